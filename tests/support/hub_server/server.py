"""HTTP: the servers of the Hub, requests and responses, routes, and rules by which chosen requests fail."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from hub_server.store import Commit, Repo, Store

if TYPE_CHECKING:
    import pytest

TOKEN = "hf_of_the_tester"


@dataclass
class Request:
    """A received request, and the status of the response (0: the connection broke); ``user`` is None without token."""

    method: str
    target: str
    headers: Any
    user: str | None
    body: bytes = b""
    status: int = 0

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)

    @property
    def authorized(self) -> bool:
        return "Authorization" in self.headers

    @property
    def line(self) -> str:
        return f"{self.method} {unquote(self.target)}"

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any, status: int = 200, **headers: str) -> Response:
        return cls(status, json.dumps(data).encode(), {"Content-Type": "application/json", **headers})


class Refusal(Exception):
    """An error response: its status, message and the Hub's error code."""

    def __init__(self, status: int, message: str, code: str = "", **headers: str) -> None:
        headers |= {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.response = Response.of({"error": message}, status, **headers)


@dataclass
class Fault:
    """Which requests fail, and how.

    A request counts whose "METHOD /path" the pattern ``match`` is in; the ``nth`` such request and the ``times - 1``
    after it fail. ``status`` with ``headers`` and ``body``: that answer instead of the right one.
    ``drop_request_after``: the connection breaks after so many bytes of the request's content.
    ``drop_response_after``: the request takes effect, and the connection breaks after so many bytes of the answer's
    content (0: before the answer). ``shorten_to``: the answer claims to be complete and has so many bytes.
    ``endless``: an answer that never ends, "silence", "slow headers", "slow" or "large".
    """

    match: str
    nth: int = 1
    times: int = 1
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    drop_request_after: int | None = None
    drop_response_after: int | None = None
    shorten_to: int | None = None
    endless: str | None = None
    seen: int = 0

    def takes(self, line: str) -> bool:
        """Count the request if it matches; return whether it must fail."""
        if not re.search(self.match, line):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


class Faults(list[Fault]):
    """The active rules; the first matching rule decides."""

    def add(self, match: str, **how: Any) -> None:
        self.append(Fault(match, **how))


Answer = Callable[..., Response]
_ROUTES: list[tuple[str, re.Pattern[str], Answer]] = []
# Shorthands in patterns; what a group matches is unquoted.
_NAMES = {
    "<repo>": r"(?P<kind>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)",
    "<git>": r"(?:(?P<kind>datasets|spaces)/)?(?P<id>[^/]+/[^/]+?)",
    "<revision>": r"(?P<revision>[^/]+)",
    "<slug>": r"(?P<slug>[^/]+/[^/]+)",
}


def route(method: str, pattern: str) -> Callable[[Answer], Answer]:
    """Register a function for requests with this method whose whole path matches."""
    for name, regex in _NAMES.items():
        pattern = pattern.replace(name, regex)

    def register(answer: Answer) -> Answer:
        _ROUTES.append((method, re.compile(pattern), answer))
        return answer

    return register


class Hub:
    """A Hub at ``url``, running while the context is open. Its user "tester" may write to ``organizations``.

    Large files are served from ``cdn``, another origin, as the real one does.
    """

    def __init__(self, organizations: tuple[str, ...] = ("qabench",)) -> None:
        self.users = {TOKEN: "tester"}
        self.organizations = organizations
        self.store = Store()
        self.collections: dict[str, dict[str, Any]] = {}
        self.faults = Faults()
        self.requests: list[Request] = []
        self.outside: list[str] = []
        self.page_size = 1000  # entries of a listing
        self.lock = threading.RLock()
        handler = type("HubHandler", (_Handler,), {"hub": self})
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(2)]
        self.url, self.cdn = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def __enter__(self) -> Hub:
        for server in self._servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a client in a separate process; its requests elsewhere end up in ``outside``."""
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.cdn)
        return {"HF_ENDPOINT": self.url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **proxies}

    def used_here(self, patch: pytest.MonkeyPatch) -> None:
        """Make it the Hub of huggingface_hub in this process, which the tests' settings keep offline."""
        from huggingface_hub import constants

        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(constants, "ENDPOINT", self.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", self.url + "/{repo_id}/resolve/{revision}/{filename}")
        patch.setenv("HF_TOKEN", TOKEN)

    def lines(self, *methods: str) -> list[str]:
        """Return "METHOD /path" of the requests with these methods, or of all."""
        return [request.line for request in self.requests if not methods or request.method in methods]

    def repo(self, kind: str, id: str) -> Repo:
        return self.store.repos[kind, id]

    def readable(self, kind: str, id: str, user: str | None) -> Repo:
        """Return the repository that a request names; ``kind`` is plural, as in addresses."""
        repo = self.store.repos.get((kind.removesuffix("s"), id))
        if repo is None or (repo.private and not self.may_write(id, user)):
            # To strangers the Hub does not say whether there is one.
            raise Refusal(404 if user else 401, "Repository not found", "RepoNotFound")
        return repo

    def writable(self, kind: str, id: str, user: str | None) -> Repo:
        if user is None:
            raise Refusal(401, "Invalid username or password.")
        repo = self.readable(kind, id, user)
        self.check_owner(id, user)
        return repo

    def may_write(self, id: str, user: str | None) -> bool:
        return user is not None and id.split("/")[0] in (user, *self.organizations)

    def check_owner(self, id: str, user: str | None) -> None:
        if not self.may_write(id, user):
            raise Refusal(403 if user else 401, f"You don't have the rights to write to {id}")

    def commit(self, repo: Repo, revision: str) -> Commit:
        if (commit := repo.resolve(revision)) is None:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def answer(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        for route_method, pattern, function in _ROUTES:
            if route_method == method and (match := pattern.fullmatch(request.path)):
                groups = {name: unquote(text) for name, text in match.groupdict().items() if text is not None}
                try:
                    return function(self, request, **groups)
                except Refusal as refusal:
                    return refusal.response
                except Exception as error:  # 400, because clients would try again and again after 500
                    traceback.print_exc()
                    return Refusal(400, f"The test Hub itself failed: {type(error).__name__}: {error}").response
        return Refusal(404, f"The test Hub does not know {request.method} {request.path}").response


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_request(self) -> None:
        if self.path.startswith("http://") or self.command == "CONNECT":
            self.hub.outside.append(f"{self.command} {self.path}")
            self.close_connection = True
            return self.send_error(403)
        user = self.hub.users.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        request = Request(self.command, self.path, self.headers, user)
        with self.hub.lock:
            self.hub.requests.append(request)
            fault = next((fault for fault in self.hub.faults if fault.takes(request.line)), None) or Fault("")
        length, limit = int(self.headers.get("Content-Length") or 0), fault.drop_request_after
        request.body = self._read_chunks(limit) if length == 0 else self.rfile.read(min(length, limit or length))
        if limit is not None:
            return self._break()
        if fault.endless:
            return self._send_endlessly(fault.endless)
        replaced = fault.status and Response(fault.status, fault.body, fault.headers)
        self._send(replaced or self.hub.answer(request), request, fault)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_CONNECT = handle_request

    def _read_chunks(self, limit: int | None) -> bytes:
        content = b""
        while "chunked" in self.headers.get("Transfer-Encoding", "") and (limit is None or len(content) < limit):
            size = int(self.rfile.readline().split(b";")[0], 16)
            content += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                break
        return content

    def _send(self, response: Response, request: Request, fault: Fault) -> None:
        body = response.body[: fault.shorten_to]
        if fault.drop_response_after == 0:
            return self._break()
        request.status = response.status
        self.send_response(response.status)
        for name, value in {**response.headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        with suppress(OSError):  # the client went away
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: fault.drop_response_after])
        if fault.drop_response_after is not None:
            self._break()

    def _send_endlessly(self, answer: str) -> None:
        """Send nothing, slow headers, a slow body or a large one, until the client goes away."""
        parts = {"silence": b"", "slow headers": b"A: b\r\n", "slow": b"1,", "large": b"1," * 5000}
        starts = {"silence": b"", "slow headers": b"HTTP/1.1 200 OK\r\n"}
        with suppress(OSError):
            self.wfile.write(starts.get(answer, b"HTTP/1.1 200 OK\r\n\r\n["))
            while True:
                self.wfile.write(parts[answer])
                time.sleep(0.02)
        self.close_connection = True

    def _break(self) -> None:
        self.close_connection = True
        with suppress(OSError):  # where the client was first
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        pass
