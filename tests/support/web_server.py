"""A loopback web server for tests of web evidence: pages, robots.txt, and a search API like
SearXNG's.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback import Loopback

HTML = "text/html; charset=utf-8"


@dataclass
class Reply:
    """A response; ``parts`` are sent one by one, and a callable among them is called first, such as
    Event.wait.
    """

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


class WebServer(Loopback):
    """Serves ``pages`` (path -> reply) and /search, whose results are ``found`` (query -> paths or
    URLs).

    ``posted`` (body -> reply) answers every POST; by default, as the page of its path.

    Attributes:
        requests: (path, headers) of every request, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, Reply] = {}
        self.found: Callable[[str], list[str]] = lambda query: []
        # a search for it has the status 403
        self.failing: Callable[[str], bool] = lambda query: False
        self.engines: list[Any] = []
        self.posted: Callable[[str], Reply] | None = None
        self.requests: list[tuple[str, dict[str, str]]] = []

    def paths(self) -> list[str]:
        """The paths of the requests, without queries."""
        return [path.partition("?")[0] for path, _ in self.requests]

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

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.command == "POST":
            body = request.rfile.read(int(request.headers["Content-Length"])).decode()
            self.requests.append((f"{request.path} {body}", dict(request.headers)))
            reply = self.posted(body) if self.posted else self._reply(request.path)
        else:
            self.requests.append((request.path, dict(request.headers)))
            reply = self._reply(request.path)
        request.send_response(reply.status)
        if kind := "application/json" if request.command == "POST" else reply.kind:
            request.send_header("Content-Type", kind)
        for name, value in reply.headers.items():
            request.send_header(name, value)
        request.end_headers()
        for part in reply.parts or [reply.body]:
            if callable(part):
                part()
            else:
                request.wfile.write(part)
                request.wfile.flush()
