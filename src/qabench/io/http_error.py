"""The error of a request over HTTP, and what a status means."""

from __future__ import annotations

import contextlib
import email.utils
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from qabench.errors import QabenchError
from qabench.io.limits import MAX_REPLY_CHARACTERS, json_of
from qabench.io.redaction import printable

# The maximum number of characters of a server's text that an error shows.
MAX_CHARACTERS_SHOWN = 300
# The message of the error after which Inspect starts an event loop. That error is the context of
# every error that is raised inside the loop.
NO_LOOP = "no running event loop"
# ``qabench.llm`` replaces unusable responses, such as a web page with the status 200. Its own
# responses have this extension. Unlike a header, a server cannot send it.
MADE_HERE = "qabench_made_here"
# The status codes that are retried, in addition to all 5xx.
RETRIED_STATUS = (408, 425, 429)
# Wrong key, no credit, or unknown model: every further call would fail in the same way.
FATAL = {401, 402, 404}
# What the operating system says (Linux, macOS) if a connection is not possible. The errors of
# client libraries contain nothing but this text.
NOBODY_THERE = re.compile(
    "Name or service not known|nodename nor servname|Temporary failure in name resolution|"
    "No address associated with hostname|All connection attempts failed|Connection refused|Connect call failed|"
    "No route to host|Network is unreachable"
)
# How deep a message may be nested, as in {"error": {"message": ...}} or {"detail": [{"msg": ...}]}.
MAX_LEVELS_OF_MESSAGE = 4


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
        # Both texts may quote the server.
        self.reason = printable(self.reason, MAX_CHARACTERS_SHOWN)
        self.detail = printable(self.detail, MAX_CHARACTERS_SHOWN)

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.url, self.reason, self.detail]))


def text_of(response: Any) -> str:
    """Return the text of a response, as UTF-8 if it is not in the encoding that it declares."""
    try:
        return str(response.text)
    except ValueError:
        # For example, the response declares UTF-16, but lacks the byte order mark.
        response.encoding = "utf-8"
        return str(response.text)


def check_status(response: Any, body: str = "") -> None:
    """Raise HttpError unless the status of an httpx2 response is 200 or 206."""
    if response.status_code not in (200, 206):
        raise status_error(response, body)


def status_error(response: Any, body: str = "", label: str = "status") -> HttpError:
    """Return the error for a response's status. A transient error has the server's Retry-After."""
    status = response.status_code
    transient = status in RETRIED_STATUS or status >= 500
    wait = None
    if transient:
        wait = retry_after(response.headers)
    detail = message_in(body)
    if wait is not None and not detail:
        detail = "the server asks to wait"
    return HttpError(f"{label} {status}", detail, transient=transient, wait=wait, status=status)


def message_in(body: Any) -> str:
    """Return the message in the body of an error response, in one line, or "" without a message.

    The message is the field ``message``, ``detail``, ``error`` or ``msg``, or the first line of
    plain text.
    """
    if isinstance(body, str):
        with contextlib.suppress(ValueError):
            body = json_of(body, MAX_REPLY_CHARACTERS)
    for _ in range(MAX_LEVELS_OF_MESSAGE):
        if isinstance(body, list):
            body = body[0] if body else None
        if isinstance(body, dict):
            names = ("message", "detail", "error", "msg")
            values = [body[name] for name in names if body.get(name)]
            body = values[0] if values else None
    return first_line(body) if isinstance(body, str) else ""


def first_line(text: str) -> str:
    """Return the first nonblank line of a server's text in ``printable`` form."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return printable(lines[0], MAX_CHARACTERS_SHOWN) if lines else ""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes. The last attempt's error replaces tenacity's RetryError."""
    # Causes can form a cycle.
    seen: set[int] = set()
    while error is not None and id(error) not in seen and str(error) != NO_LOOP:
        seen.add(id(error))
        if (attempt := getattr(error, "last_attempt", None)) is not None:
            error = attempt.exception()
            continue
        yield error
        cause = error.__cause__
        if cause is None and not error.__suppress_context__:
            cause = error.__context__
        error = cause


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in a Retry-After header, at least 0. None without a usable header."""
    value = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        seconds = float(value)
        if math.isfinite(seconds):
            return max(0.0, seconds)
    with contextlib.suppress(ValueError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None


def reason_of(error: BaseException) -> HttpError:
    """Classify the exception of a failed library call by its HTTP status or connection error.

    Equal failures have equal texts. The result is ``unreachable`` if nothing answers at the
    address.
    """
    chain = list(causes(error))
    for link in chain:
        if isinstance(link, HttpError):
            # The transport itself raised this error.
            return link
        if isinstance(status := getattr(link, "status_code", None), int):
            message = next(filter(None, map(_body_message, chain)), "") or _message(link)
            if any(map(_is_made_here, chain)):
                return HttpError(message, status=status)
            return HttpError(f"HTTP {status}", message, status=status)
    url = next(filter(None, map(_url, chain)), "")
    reason = _message(chain[-1]) or type(chain[-1]).__name__
    if any("Timeout" in type(link).__name__ for link in chain):
        reason = "no reply in time"
    nobody = any(NOBODY_THERE.search(str(link)) for link in chain)
    return HttpError(reason, url, transient=True, unreachable=nobody)


def _is_made_here(error: BaseException) -> bool:
    """Tell whether this package, and not the server, chose the status of a failed response."""
    extensions = getattr(getattr(error, "response", None), "extensions", {})
    return MADE_HERE in extensions


def _body_message(error: BaseException) -> str:
    return message_in(getattr(error, "body", None))


def _message(error: BaseException) -> str:
    # Inspect's own message begins with the whole request.
    text = getattr(error, "provider_message", None) or getattr(error, "message", None) or error
    return _body_message(error) or first_line(str(text))


def _url(error: BaseException) -> str:
    with contextlib.suppress(AttributeError, RuntimeError):
        # httpx raises RuntimeError if an error has no request.
        return str(error.request.url)  # type: ignore[attr-defined]
    return ""
