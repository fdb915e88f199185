"""Wikipedia served by a real MediaWiki: revisions around the epoch, redirects, missing pages,
tables.
"""

from collections.abc import Iterator
from typing import Any

import mediawiki_server
import pytest
from mediawiki_server import MediaWikiServer

from qabench.retrieval.wiki.client import wiki_content, wiki_search, wikipedia
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import PageMissing, WikiPage

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(mediawiki_server.why_not() is not None, reason=str(mediawiki_server.why_not())),
    pytest.mark.xdist_group("mediawiki"),
]

ARTICLE = """{| class="infobox"
! colspan="2" | Grey heron
|-
! Wingspan
| 1.95 m
|}
The '''grey heron''' is a ''wading'' bird of the [[Heron family|herons]], seen with [[Mute swan]]s.
http://127.0.0.1/heron.png
== Numbers ==
{| class="wikitable"
! Year !! Breeding pairs
|-
| 1999 || 1,234
|-
| 2003 || 2,528
|}
* one
** two
"""
BEFORE, LAST_SECOND, AFTER = "2020-05-01T12:00:00Z", "2023-11-20T00:00:00Z", "2023-11-20T00:00:01Z"
PAGES = [
    ("Grey heron", [(BEFORE, "An old text."), (LAST_SECOND, ARTICLE), (AFTER, "A text after the epoch.")]),
    ("Mute swan", [(BEFORE, "A '''swan'''. <b>Unicode</b>: Zürich, 東京 👩‍🚀.")]),
    ("Late page", [(AFTER, "This page on a heron came too late.")]),
    ("Heron", [(BEFORE, "#REDIRECT [[Grey heron#Numbers]]")]),
    ("Waders", [(BEFORE, "#REDIRECT [[Heron]]")]),
    ("Merged", [(BEFORE, "An article of its own at the epoch."), (AFTER, "#REDIRECT [[Grey heron]]")]),
    ("Renamed", [(AFTER, "#REDIRECT [[Mute swan]]")]),
    ("Questions? & answers/more", [(BEFORE, "An odd title.")]),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MediaWikiServer]:
    with MediaWikiServer(tmp_path_factory.mktemp("mediawiki") / "wiki", PAGES) as server:
        yield server


@pytest.fixture(autouse=True)
def wiki(server: MediaWikiServer, isolated: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[MediaWiki]:
    """The wiki given by environment variables."""
    monkeypatch.setenv("QABENCH_WIKIPEDIA_API", server.api)
    wiki = wikipedia()
    assert isinstance(wiki, MediaWiki)
    yield wiki
    wiki.client.close()


def row(wiki: MediaWiki, title: str, *ids: str) -> dict[str, Any]:
    """The evidence of a page with these ids, and null for the others."""
    found = wiki._at_epoch(WikiPage(title))
    known = {"pageid": found.pageid, "revid": found.revid}
    return {"title": title, "url": ""} | {name: known[name] if name in ids else None for name in known}


@pytest.mark.parametrize("ids", [(), ("pageid",), ("pageid", "revid")])
def test_the_revision_at_the_epoch(wiki: MediaWiki, ids: tuple[str, ...]) -> None:
    evidence = row(wiki, "Grey heron", *ids)
    text = wiki_content(evidence)
    for kept in ("The **grey heron** is a *wading* bird of the herons, seen with Mute swans.", "## Numbers"):
        assert kept in text
    # the official version of markdownify keeps the line breaks of cells
    spaced = " ".join(text.split())
    for kept in ("| Wingspan | 1.95 m |", "| Year | Breeding pairs |", "| 1999 | 1,234 |", "* one + two"):
        assert kept in spaced
    assert "![heron.png](image)" in text
    assert "old text" not in text and "after the epoch" not in text and "NewPP" not in text
    assert wiki_content(evidence) == text, "from the cache"


def test_equals_the_official_package_s_text(wiki: MediaWiki, server: MediaWikiServer) -> None:
    """The same HTML, the same Markdown."""
    utils = pytest.importorskip("fanoutqa.utils", reason="needs the extra parity")
    import httpx2

    for title in ("Grey heron", "Mute swan", "Questions? & answers/more"):
        evidence = row(wiki, title, "pageid", "revid")
        parameters = {"format": "json", "action": "parse", "oldid": evidence["revid"], "prop": "text"}
        html = httpx2.get(server.api, params=parameters).json()["parse"]["text"]["*"]
        assert wiki_content(evidence) == utils.markdownify(html)
        assert wiki.cache.path(evidence["pageid"]).read_text(encoding="utf-8") == utils.markdownify(html)


def test_search(wiki: MediaWiki) -> None:
    assert {page.title for page in wiki_search("heron")} == {"Grey heron", "Heron"}
    assert len(wiki_search("heron", results=1)) == 1
    (swan,) = wiki_search("swan")
    assert (swan.title, swan.revid, swan.url) == ("Mute swan", None, "https://en.wikipedia.org/wiki/Mute_swan")
    assert "Zürich, 東京 👩‍🚀" in wiki_content(swan)
    assert wiki_search("platypus") == []


@pytest.mark.parametrize("title", ["Heron", "Waders", "heron", "Heron_"])
def test_redirects_of_the_epoch_are_followed(wiki: MediaWiki, title: str) -> None:
    assert wiki_content({"title": title}) == wiki_content({"title": "Grey heron"})


def test_redirects_younger_than_the_epoch(wiki: MediaWiki) -> None:
    assert wiki_content({"title": "Merged"}).strip() == "An article of its own at the epoch."
    assert wiki_content({"title": "Renamed"}) == wiki_content({"title": "Mute swan"})
    assert wiki_content({"title": "Questions? & answers/more"}).strip() == "An odd title."


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [({"title": "Late page"}, "no such page at the epoch 2023-11-20T00:00:00Z"),
     ({"title": "Gone", "pageid": 4711, "revid": 4711}, "There is no revision with ID 4711"),
     ({"title": "[not] a title"}, "contains invalid characters")],
)  # fmt: skip
def test_missing_pages_are_reported(wiki: MediaWiki, evidence: dict[str, Any], reason: str) -> None:
    with pytest.raises(PageMissing, match=reason):
        wiki_content(evidence)
    assert not list(wiki.cache.folder.glob("*.md"))
