"""Fixtures of the retrieval tests: loopback servers, separate settings, and BM25 as without the
extra ``fast``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_wiki import ScriptedWiki, isolate, wiki_of
from web_server import WebServer

from qabench.retrieval.bm25.building import InvertedScorer
from qabench.retrieval.wiki.mediawiki import MediaWiki


@pytest.fixture(autouse=True)
def without_numba(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "with_numba" not in request.fixturenames:
        monkeypatch.setattr(InvertedScorer, "_choose_search", lambda scorer, queries: None)


@pytest.fixture
def with_numba() -> None:
    """The compiled search is used."""


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture
def server() -> Iterator[ScriptedWiki]:
    with ScriptedWiki(40) as server:
        yield server


@pytest.fixture
def wiki(server: ScriptedWiki, tmp_path: Path) -> Iterator[MediaWiki]:
    wiki = wiki_of(server, tmp_path / "pages")
    yield wiki
    wiki.client.close()
