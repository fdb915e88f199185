"""A loopback web server for tests of web evidence: pages, robots.txt, and a search API like SearXNG's."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HTML = "text/html; charset=utf-8"


@dataclass
class Reply:
    """A response; ``parts`` are sent one by one, and a callable among them is called first, such as Event.wait."""

    body: bytes = b""
    status: int = 200
    kind: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: list[bytes | Callable[[], Any]] = field(default_factory=list)


def page(title: str, *paragraphs: str) -> Reply:
    """An HTML page with navigation and a footer around its text."""
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return Reply(
        f"<!DOCTYPE html><html lang='en'><head><title>{title}</title></head><body><nav><a href='/'>Home</a> "
        f"<a href='/shop'>Shop</a></nav><article><h1>{title}</h1>{text}</article>"
        "<footer>Cookies and newsletters</footer></body></html>".encode()
    )


class WebServer:
    """Serves ``pages`` (path -> reply) and /search, whose results are ``found`` (query -> paths or URLs).

    ``posted`` (body -> reply) answers every POST; by default, as the page of its path.

    Attributes:
        requests: (path, headers) of every request, in order.
    """

    def __init__(self) -> None:
        self.pages: dict[str, Reply] = {}
        self.found: Callable[[str], list[str]] = lambda query: []
        self.failing: Callable[[str], bool] = lambda query: False  # a search for it has the status 403
        self.engines: list[Any] = []
        self.posted: Callable[[str], Reply] | None = None
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def paths(self) -> list[str]:
        """The paths of the requests, without queries."""
        return [path.partition("?")[0] for path, _ in self.requests]

    def __enter__(self) -> WebServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _search(self, query: str) -> Reply:
        urls = [path if "://" in path else self.url + path for path in self.found(query)]
        results = [{"url": url, "title": url, "content": "...", "engine": "test"} for url in urls]
        document = {"query": query, "number_of_results": 0, "results": results, "unresponsive_engines": self.engines}
        return Reply(json.dumps(document).encode(), kind="application/json")

    def _reply(self, target: str) -> Reply:
        parts = urlsplit(target)
        if parts.path in self.pages:
            return self.pages[parts.path]
        if parts.path == "/search":
            query = parse_qs(parts.query)["q"][0]
            return Reply(status=403) if self.failing(query) else self._search(query)
        return Reply(b"<p>not here</p>", 404)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append((self.path, dict(self.headers)))
                reply = outer._reply(self.path)
                self.send_response(reply.status)
                if reply.kind:
                    self.send_header("Content-Type", reply.kind)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for part in reply.parts or [reply.body]:
                        if callable(part):
                            part()
                        else:
                            self.wfile.write(part)
                            self.wfile.flush()
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client has read enough

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.requests.append((f"{self.path} {body}", dict(self.headers)))
                reply = outer.posted(body) if outer.posted else outer._reply(self.path)
                self.send_response(reply.status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
