"""A loopback web server with scripted faults, for the tests of downloads."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

from loopback import Loopback


@dataclass
class Fault:
    """A fault in the response to one request.

    ``status`` with ``headers``: that answer, with no content. ``drop_after``: the connection breaks after that many
    bytes. ``ignore_range``: all of the content, whatever the range. ``shift``: a range that begins so many bytes later
    than the asked one. ``content``: other content. ``chunk`` and ``pause``: so many bytes at a time, with seconds
    between. ``no_length``: no Content-Length, the end of the connection ends the content.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop_after: int | None = None
    ignore_range: bool = False
    shift: int = 0
    content: bytes | None = None
    chunk: int = 1 << 16
    pause: float = 0.0
    no_length: bool = False


@dataclass
class Request:
    """A received request; ``sent`` is the number of content bytes sent."""

    path: str
    range: str | None
    user_agent: str | None
    status: int = 0
    sent: int = 0


class FaultServer(Loopback):
    """Serves ``files`` (path without leading slash -> content); each request takes the next of ``faults``, if any.

    ``always`` holds for each request once ``faults`` is used up.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.faults: deque[Fault] = deque()
        self.always = Fault()
        self.requests: list[Request] = []

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        fault = self.faults.popleft() if self.faults else self.always
        seen = Request(unquote(request.path[1:]), request.headers.get("Range"), request.headers.get("User-Agent"))
        self.requests.append(seen)
        _answer(request, self.files.get(seen.path), fault, seen)


def _answer(handler: BaseHTTPRequestHandler, content: bytes | None, fault: Fault, seen: Request) -> None:
    content = fault.content if fault.content is not None else content
    start = int(seen.range.removeprefix("bytes=").removesuffix("-")) if seen.range and not fault.ignore_range else None
    headers = dict(fault.headers)
    body = b""
    if fault.status is not None:
        seen.status = fault.status
    elif content is None:
        seen.status = 404
    elif start is not None and start >= len(content):
        seen.status = 416
    elif start is not None:
        start += fault.shift
        seen.status, body = 206, content[start:]
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
    else:
        seen.status, body = 200, content
    if not fault.no_length:
        headers["Content-Length"] = str(len(body))
    handler.send_response(seen.status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.close_connection = True
    for at in range(0, len(body[: fault.drop_after]), fault.chunk):
        piece = body[: fault.drop_after][at : at + fault.chunk]
        handler.wfile.write(piece)
        handler.wfile.flush()
        seen.sent += len(piece)
        time.sleep(fault.pause)
