"""Looking up titles: pages, lists of pages, and cached pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_wiki import ScriptedWiki, isolate, wiki_of

from qabench.retrieval.wiki.page import PageMissing, WikiError, WikiPage

pytest.importorskip("markdownify", reason="needs the extra retrieval")


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)


def test_lookup_finds_pages_and_lists_of_pages(tmp_path: Path) -> None:
    with ScriptedWiki(2) as server:
        items = '<li class="tocsection-1"><a>Contents</a></li><li><a>Mercury (planet)</a>, or not</li><li>none</li>'
        server.pages["Mercury"] = (9, 90, f'<ul class="disambig">{items}<li><a>Mercury (element)</a></li></ul>')
        wiki = wiki_of(server, tmp_path)
        assert wiki.lookup("Page 2") == WikiPage("Page 2", 2)
        assert wiki.lookup("Mercury") == ["Mercury (element)", "Mercury (planet)"]
        for title in ("nothing", "a|b"):
            with pytest.raises(PageMissing):
                wiki.lookup(title)


def test_lookup_without_a_network_needs_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedWiki(1) as server:
        wiki = wiki_of(server, tmp_path)
        wiki.content(WikiPage("Page 1"))
        monkeypatch.setenv("QABENCH_OFFLINE", "1")
        assert wiki.lookup("Page 1") == WikiPage("Page 1", 1)
        with pytest.raises(WikiError, match="QABENCH_OFFLINE"):
            wiki.lookup("Page 2")
