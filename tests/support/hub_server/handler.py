"""HTTP: reads a request, fails by the rules, sends the response, keeps the connection."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hub_server.routes import Request, Response, answer

if TYPE_CHECKING:
    from hub_server.faults import Fault
    from hub_server.hub import Hub, Seen


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_request(self) -> None:
        from hub_server.hub import Seen

        if self.path.startswith("http://") or self.command == "CONNECT":
            return self._refuse_to_go_outside()
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        seen = Seen(self.command, unquote(self.path), self.headers.get("Range"), bool(token))
        self.hub.requests.append(seen)
        fault = self.hub.faults.for_request(seen.line)
        body = self._read(fault)
        if body is None:
            return self._break()
        request = Request(self.command, self.path, dict(self.headers.items()), body, self.hub.users.get(token))
        if fault and fault.endless:
            self._send_endlessly(fault.endless)
        elif fault and fault.status:
            self._send(Response(fault.status, fault.body, fault.headers), seen)
        else:
            self._send(answer(self.hub, request), seen, fault)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_CONNECT = handle_request

    def _read(self, fault: Fault | None) -> bytes | None:
        """The request's content; None if the connection is to break within it."""
        limit = fault.drop_request_after if fault else None
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            content = b""
            while limit is None or len(content) < limit:
                size = int(self.rfile.readline().split(b";")[0], 16)
                content += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    return content
            return None
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length if limit is None else min(length, limit))
        return content if limit is None else None

    def _send(self, response: Response, seen: Seen, fault: Fault | None = None) -> None:
        body = response.body
        if fault and fault.shorten_to is not None:
            body = body[: fault.shorten_to]
        drop = fault.drop_response_after if fault else None
        if drop == 0:
            return self._break()
        seen.status = response.status
        self.send_response(response.status)
        length = str(len(body))
        for name, value in {**response.headers, "Content-Length": length}.items():
            self.send_header(name, value)
        head_only = self.command == "HEAD" or response.status in (204, 304)
        try:
            self.end_headers()
            if not head_only:
                self.wfile.write(body if drop is None else body[:drop])
        except OSError:  # the client went away
            self.close_connection = True
        if drop is not None:
            self._break()

    def _send_endlessly(self, part: str) -> None:
        """Sends headers or a body, a little at a time, until the client goes away."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: " if part == "headers" else b"HTTP/1.1 200 OK\r\n\r\n[")
        with suppress(OSError):
            while True:
                self.wfile.write(b"1" if part == "headers" else b"1," * 5000)
                time.sleep(0.02)
        self.close_connection = True

    def _break(self) -> None:
        self.close_connection = True
        with suppress(OSError):  # where the client was first
            self.connection.shutdown(socket.SHUT_RDWR)

    def _refuse_to_go_outside(self) -> None:
        self.hub.outside.append(f"{self.command} {self.path}")
        self.close_connection = True
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass
