"""What all our HTTP clients read in the same way."""

from __future__ import annotations

import email.utils
import time


def retry_after(value: str | None) -> float | None:
    """The seconds that a Retry-After header asks for, as a number of seconds or a date; None where it says nothing."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
