"""The Hub: its servers, its state, and its log for tests."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from hub_server import cards, collections, commits, discussions, files, repositories, xet
from hub_server.faults import Faults
from hub_server.handler import Handler
from hub_server.routes import Refusal
from hub_server.store import Commit, Repo, Store

if TYPE_CHECKING:
    import pytest

TOKEN = "hf_of_the_tester"
PARTS = (cards, collections, commits, discussions, files, repositories, xet)  # importing them made their routes


@dataclass
class Seen:
    """A received request, and the status of the response (0: the connection broke)."""

    method: str
    path: str
    range: str | None
    authorized: bool
    status: int = 0

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


class Hub:
    """A Hub at ``url``, running while the context is open. Its user "tester" may write to ``organizations``.

    Large files are served from ``cdn``, another origin, as the real one does. ``page_size`` is how many entries a
    listing has at a time.
    """

    def __init__(self, organizations: tuple[str, ...] = ("qabench",)) -> None:
        self.users = {TOKEN: "tester"}
        self.organizations = organizations
        self.store = Store()
        self.collections: dict[str, dict[str, Any]] = {}
        self.faults = Faults()
        self.requests: list[Seen] = []
        self.outside: list[str] = []
        self.page_size = 1000
        self.xorbs: dict[str, list[bytes]] = {}
        # In the address, because clients keep what they know of a storage by its address, and ports come again.
        self.cas_path = f"/cas/{uuid.uuid4().hex}"
        self.lock = threading.RLock()
        self._servers = [self._server(), self._server()]

    def _server(self) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("HubHandler", (Handler,), {"hub": self}))
        server.daemon_threads = True
        return server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    @property
    def cdn(self) -> str:
        return f"http://127.0.0.1:{self._servers[1].server_port}"

    def __enter__(self) -> Hub:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a client in a separate process. Requests to other machines come here as to a proxy.

        Such requests are rejected and recorded in ``outside``.
        """
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.cdn)
        return {"HF_ENDPOINT": self.url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **proxies}

    def used_here(self, patch: pytest.MonkeyPatch) -> None:
        """Makes it the Hub of huggingface_hub in this process, which the tests' settings keep offline."""
        from huggingface_hub import constants

        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "ENDPOINT", self.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", self.url + "/{repo_id}/resolve/{revision}/{filename}")
        patch.setenv("HF_TOKEN", TOKEN)

    def lines(self, *methods: str) -> list[str]:
        """ "METHOD /path" of the requests, of the methods named or of all."""
        return [seen.line for seen in self.requests if not methods or seen.method in methods]

    def repo(self, kind: str, id_: str) -> Repo:
        """A repository, for tests: KeyError if it is not there."""
        return self.store.repos[kind, id_]

    def readable(self, kind: str, id_: str, user: str | None) -> Repo:
        """The repository that a request names; ``kind`` is plural, as in addresses."""
        repo = self.store.repos.get((kind.removesuffix("s"), id_))
        if repo is None or (repo.private and not self.may_write(id_, user)):
            # To strangers the Hub does not say whether there is one.
            raise Refusal(404 if user else 401, "Repository not found", "RepoNotFound")
        return repo

    def writable(self, kind: str, id_: str, user: str | None) -> Repo:
        if user is None:
            raise Refusal(401, "Invalid username or password.")
        repo = self.readable(kind, id_, user)
        if not self.may_write(id_, user):
            raise Refusal(403, f"You don't have the rights to write to {id_}")
        return repo

    def may_write(self, id_: str, user: str | None) -> bool:
        return user is not None and id_.split("/")[0] in (user, *self.organizations)

    def commit(self, repo: Repo, revision: str) -> Commit:
        """The commit that a request names."""
        if (commit := repo.resolve(revision)) is None:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit
