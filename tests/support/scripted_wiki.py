"""A loopback wiki with the required part of the MediaWiki action API, and scripted faults."""

import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from loopback import Loopback

from qabench.io.http import HttpClient, Retry
from qabench.retrieval.wiki.cache import WikiCache
from qabench.retrieval.wiki.mediawiki import MediaWiki

BRISK = Retry(attempts=3, first_wait=0.01, longest_wait=2.0)


@dataclass
class Fault:
    """A fault in the response to one request: other content, or a missing end."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop_after: int | None = None


def api_error(code: str, **headers: str) -> Fault:
    """An error as the API reports it: with status 200."""
    return Fault(body=json.dumps({"error": {"code": code, "info": f"about {code}"}}).encode(), headers=headers)


class ScriptedWiki(Loopback):
    """Serves ``pages`` (title -> (page id, revision id, HTML)); each request takes the next of
    ``faults``, if any.

    ``busiest`` is the most requests that were under way at once.
    """

    def __init__(self, count: int = 0) -> None:
        super().__init__()
        self.pages = {f"Page {n}": (n, 1000 + n, f"<p>Text of page {n}.</p>") for n in range(1, count + 1)}
        self.faults: deque[Fault] = deque()
        self.requests: list[dict[str, str]] = []
        self.agents: set[str | None] = set()
        self.times: list[float] = []
        self.busy = self.busiest = 0
        self._lock = threading.Lock()

    @property
    def api(self) -> str:
        return f"{self.url}/w/api.php"

    @property
    def parsed(self) -> list[int]:
        """The revisions whose text was requested, in order."""
        return [int(request["oldid"]) for request in self.requests if request["action"] == "parse"]

    def row(self, number: int) -> dict[str, Any]:
        """The evidence that names a page."""
        return {"title": f"Page {number}", "pageid": number, "revid": 1000 + number, "url": ""}

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parameters = dict(parse_qsl(urlsplit(request.path).query))
        with self._lock:
            self.requests.append(parameters)
            self.times.append(time.monotonic())
            self.agents.add(request.headers.get("User-Agent"))
            self.busy += 1
            self.busiest = max(self.busy, self.busiest)
            fault = self.faults.popleft() if self.faults else Fault()
        body = json.dumps(self._answer(parameters)).encode() if fault.body is None else fault.body
        request.send_response(fault.status)
        for name, value in {**fault.headers, "Content-Length": str(len(body))}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body[: fault.drop_after])
        with self._lock:
            self.busy -= 1

    def _answer(self, request: dict[str, str]) -> dict[str, Any]:
        if request["action"] == "parse":
            for page, revision, html in self.pages.values():
                if str(revision) == request["oldid"]:
                    return {"parse": {"pageid": page, "revid": revision, "text": html}}
            return {"error": {"code": "nosuchrevid", "info": f"There is no revision with ID {request['oldid']}."}}
        if "srsearch" in request:
            found = [title for title in self.pages if request["srsearch"].lower() in title.lower()]
            hits = [{"title": title, "pageid": self.pages[title][0]} for title in found[: int(request["srlimit"])]]
            return {"query": {"search": hits}}
        for title, (page, revision, _) in self.pages.items():
            if request.get("titles") == title or request.get("pageids") == str(page):
                found: dict[str, Any] = {"pageid": page, "title": title, "revisions": [{"revid": revision}]}
                if request.get("prop") == "pageprops" and "disambig" in self.pages[title][2]:
                    found["pageprops"] = {"disambiguation": ""}
                return {"query": {"pages": [found]}}
        return {"query": {"pages": [{"title": request.get("titles"), "missing": True}]}}


def wiki_of(server: ScriptedWiki, folder: Path, retry: Retry = BRISK, **options: Any) -> MediaWiki:
    """A client for the server, with a separate cache and short waits."""
    return MediaWiki(server.api, cache=WikiCache(folder, shared=[]), client=HttpClient(retry=retry, **options))


def isolate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test use the loopback network, with a separate home folder and settings."""
    for name in ("QABENCH_OFFLINE", "HF_HUB_OFFLINE", "QABENCH_WIKICACHE", "QABENCH_WIKIPEDIA_API", "QABENCH_ZIM"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TYPE", "BASE", "ZIMNAME"):
        monkeypatch.delenv(f"FANOUTQA_{'WIKIPEDIA' if name == 'TYPE' else 'KIWIX'}_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
