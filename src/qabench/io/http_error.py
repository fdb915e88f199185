"""The error of a request over HTTP, and what a status means."""

from __future__ import annotations

import contextlib
import email.utils
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from qabench.errors import QabenchError
from qabench.io.limits import MAX_REPLY_CHARACTERS, json_of
from qabench.io.tables import printable

MOST_SHOWN = 300  # characters of a server's text in an error
# the context of every error in Inspect, which starts a loop when there is none
NO_LOOP = "no running event loop"
RETRIED_STATUS = (408, 425, 429)  # and 5xx


@dataclass(eq=False)
class HttpError(QabenchError):
    """A request without a usable response.

    Attributes:
        reason: short failure label, used for counting: "timeout", "status 404", "too large",
            "blocked address", ...
        detail: more about this failure.
        transient: whether the same request may succeed later.
        wait: seconds that the server asks clients to wait. None if it does not.
        status: the HTTP status. None without a response.
        url: the address without its query, or "" if the caller knows it.
        unreachable: whether no connection to the host has succeeded so far.
    """

    reason: str
    detail: str = ""
    _: KW_ONLY
    transient: bool = False
    wait: float | None = None
    status: int | None = None
    unreachable: bool = False
    url: str = ""

    def __post_init__(self) -> None:
        # Both can quote the server.
        self.reason = printable(self.reason, MOST_SHOWN)
        self.detail = printable(self.detail, MOST_SHOWN)

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.url, self.reason, self.detail]))


def text_of(response: Any) -> str:
    """Return the text of a response, as UTF-8 if it is not in the encoding that it declares."""
    try:
        return str(response.text)
    except ValueError:  # such as UTF-16 without its mark
        response.encoding = "utf-8"
        return str(response.text)


def check_status(response: Any, body: str = "") -> None:
    """Raise HttpError for the status of a response of httpx2 other than 200 and 206."""
    if response.status_code not in (200, 206):
        raise status_error(response, body)


def status_error(response: Any, body: str = "", label: str = "status") -> HttpError:
    """Return the error that the status of a response means.

    Transient ones have the server's Retry-After.
    """
    status = response.status_code
    transient = status in RETRIED_STATUS or status >= 500
    wait = retry_after(response.headers) if transient else None
    detail = message_in(body) or ("the server asks to wait" if wait is not None else "")
    return HttpError(f"{label} {status}", detail, transient=transient, wait=wait, status=status)


def message_in(body: Any) -> str:
    """Return what the body of an error response says, in one line, or "" if it says nothing.

    This is its ``message``, ``detail``, ``error`` or ``msg``, or the first line of plain text.
    """
    if isinstance(body, str):
        with contextlib.suppress(ValueError):
            body = json_of(body, MAX_REPLY_CHARACTERS)
    for _ in range(4):  # {"error": {"message": ...}}, {"detail": [{"msg": ...}]}, {"error": "..."}
        if isinstance(body, list):
            body = body[0] if body else None
        if isinstance(body, dict):
            names = ("message", "detail", "error", "msg")
            body = next((body[name] for name in names if body.get(name)), None)
    return first_line(body) if isinstance(body, str) else ""


def first_line(text: str) -> str:
    """Return the first line of a server's text that is not blank, ``printable``."""
    line = next(filter(None, map(str.strip, text.splitlines())), "")
    return printable(" ".join(line.split()), MOST_SHOWN)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, with the last attempt in place of tenacity's RetryError."""
    seen: set[int] = set()  # causes can form a cycle
    while error is not None and id(error) not in seen and str(error) != NO_LOOP:
        seen.add(id(error))
        if (attempt := getattr(error, "last_attempt", None)) is not None:
            error = attempt.exception()
            continue
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds, at least 0, of a header Retry-After (a number or a date), or None if it cannot be parsed."""
    value = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(value)):
            return max(0.0, number)
    with contextlib.suppress(ValueError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None
