"""Why a call to a model failed, in one line, from the exceptions of any client library."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from qabench.io.terminal import printable

# Wrong key, no credit, or unknown model: every further call would fail in the same way.
FATAL = {401, 402, 404}
LONGEST = 300  # characters of a server's message
_NOBODY_THERE = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH}
_REFUSED = re.compile("All connection attempts failed|Connection refused|Connect call failed")
_UNKNOWN_HOST = ("Name or service not known", "nodename nor servname", "Temporary failure in name resolution")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a call failed.

    Attributes:
        cause: one line, the same for equal failures, so that they can be grouped.
        permanent: whether all further calls would fail in the same way: a wrong key or model, or no server at the
            address.
        url: the address that was called, where the cause is the connection.
    """

    cause: str
    permanent: bool = False
    url: str | None = None

    @property
    def text(self) -> str:
        """Return the cause and the address."""
        return f"{self.cause}: {self.url}" if self.url else self.cause


def reason_of(error: BaseException) -> Reason:
    """Return the reason for a failed call: its status and message, or the connection error that caused it."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(status := getattr(link, "status_code", None), int):
            message = next(filter(None, map(_of_body, chain)), "") or _message(link)
            return Reason(f"HTTP {status}: {message}", status in FATAL)
    url = next(filter(None, map(_url, chain)), None)
    for link in chain:
        number = getattr(link, "errno", None)
        if isinstance(link, OSError) and isinstance(number, int):
            refused = "connection refused" if number == errno.ECONNREFUSED else os.strerror(number)
            return Reason(refused, number in _NOBODY_THERE, url)
        if any(text in str(link) for text in _UNKNOWN_HOST):
            return Reason("unknown host", True, url)
        if _REFUSED.search(str(link)):
            return Reason("connection refused", True, url)
    if any("Timeout" in type(link).__name__ for link in chain):
        return Reason("no reply in time", url=url)
    last = chain[-1]
    return Reason(_message(last) or type(last).__name__, url=url)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes; the last attempt in place of tenacity's RetryError."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        attempt: Any = getattr(current, "last_attempt", None)
        if attempt is not None:
            current = attempt.exception()
            continue
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _of_body(error: BaseException) -> str:
    """Return what the body of an error response says: ``message``, ``detail``, ``error``, or "" if there is none."""
    body = getattr(error, "body", None)
    if isinstance(body, str):
        return _line(next(filter(None, map(str.strip, body.splitlines())), ""))
    for _ in range(4):  # {"error": {"message": ...}}, {"detail": [{"msg": ...}]}, {"error": "..."}
        if isinstance(body, list):
            body = body[0] if body else None
        if isinstance(body, dict):
            body = next((body[name] for name in ("message", "detail", "error", "msg") if body.get(name)), None)
    return _line(body) if isinstance(body, str) else ""


def _message(error: BaseException) -> str:
    # Inspect's own message begins with the whole request.
    text = getattr(error, "provider_message", None) or getattr(error, "message", None) or error
    first_line: str = next(filter(None, map(str.strip, str(text).splitlines())), "")
    return _of_body(error) or _line(first_line)


def _line(text: str) -> str:
    return printable(" ".join(text.split()))[:LONGEST]


def _url(error: BaseException) -> str | None:
    try:
        url = getattr(getattr(error, "request", None), "url", None)  # httpx raises if there is no request
    except RuntimeError:
        return None
    return printable(str(url)) if url else None
