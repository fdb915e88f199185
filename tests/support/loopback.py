"""Servers on loopback, which run in threads: of HTTP, and of any bytes."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

# what is sent, and the pauses in between; a negative pause resets the connection
Bytes = Iterator[bytes | float]
RESET = -1.0


class Loopback:
    """An HTTP server that is open as a context. Subclasses answer the requests."""

    protocol = "HTTP/1.0"

    def __init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = self.protocol
            wbufsize = -1  # one packet per reply: two would wait 40 ms for an acknowledgment

            def do_GET(self) -> None:
                try:
                    outer.answer(self)
                    self.wfile.flush()
                except OSError:  # the client went away
                    self.close_connection = True

            do_HEAD = do_POST = do_PUT = do_DELETE = do_CONNECT = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        pass


class RawServer:
    """Answers each connection with the bytes that ``script(request)`` yields. Counts what clients
    took.
    """

    def __init__(self, script: Callable[[bytes], Bytes]) -> None:
        self.script, self.taken, self.requests = script, 0, 0
        self._closed = False
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._closed = True
        self._socket.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:  # the client went away
            connection.settimeout(5)
            request = _request(connection)
            self.requests += 1
            for piece in self.script(request):
                if self._closed:
                    return
                if isinstance(piece, bytes):
                    connection.sendall(piece)
                    self.taken += len(piece)
                elif piece < 0:
                    linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return
                else:
                    time.sleep(piece)


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            while len(body) < int(line.partition(b":")[2]):
                body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
