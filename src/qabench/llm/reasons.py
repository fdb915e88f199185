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
        """The cause and the address."""
        return f"{self.cause}: {self.url}" if self.url else self.cause


def reason_of(error: BaseException) -> Reason:
    """The reason for a failed call: its status and message, or the connection error that caused it."""
    chain = list(_chain(error))
    for one in chain:
        if isinstance(status := getattr(one, "status_code", None), int):
            said = next(filter(None, map(_of_body, chain)), "") or _message(one)
            return Reason(f"HTTP {status}: {said}", status in FATAL)
    url = next(filter(None, map(_url, chain)), None)
    for one in chain:
        number = getattr(one, "errno", None)
        if isinstance(one, OSError) and isinstance(number, int):
            refused = "connection refused" if number == errno.ECONNREFUSED else os.strerror(number)
            return Reason(refused, number in _NOBODY_THERE, url)
        if any(text in str(one) for text in _UNKNOWN_HOST):
            return Reason("unknown host", True, url)
        if _REFUSED.search(str(one)):
            return Reason("connection refused", True, url)
    if any("Timeout" in type(one).__name__ for one in chain):
        return Reason("no reply in time", url=url)
    last = chain[-1]
    return Reason(_message(last) or type(last).__name__, url=url)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes; the last attempt in place of tenacity's RetryError."""
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
    """The message in the JSON of an error response; "" if there is none."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    found = inner.get("message") if isinstance(inner, dict) else None
    return _line(found) if isinstance(found, str) else ""


def _message(error: BaseException) -> str:
    # Inspect's own message begins with the whole request.
    given = getattr(error, "provider_message", None) or getattr(error, "message", None) or error
    return _of_body(error) or _line(str(given))


def _line(text: str) -> str:
    return printable(" ".join(text.split()))[:LONGEST]


def _url(error: BaseException) -> str | None:
    try:
        url = getattr(getattr(error, "request", None), "url", None)  # httpx raises if there is no request
    except RuntimeError:
        return None
    return printable(str(url)) if url else None
