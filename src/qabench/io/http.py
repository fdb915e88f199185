"""Parsing of HTTP headers, shared by all HTTP clients of qabench."""

from __future__ import annotations

import email.utils
import math
import time


def retry_after(value: str | None, milliseconds: str | None = None) -> float | None:
    """The number of seconds that a server asks clients to wait before the next call.

    Args:
        value: the header Retry-After: a number of seconds or a date.
        milliseconds: the header retry-after-ms, which takes precedence.

    Returns:
        Seconds, at least 0; None if neither header can be parsed.
    """
    if (found := _number(milliseconds)) is not None:
        return found / 1000
    if (found := _number(value)) is not None:
        return found
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value or "").timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
