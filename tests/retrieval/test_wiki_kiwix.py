"""Kiwix: a scripted server for all forms of responses, and a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import kiwix_server
import pytest
from kiwix_server import BOOK, KiwixServer
from scripted_wiki import BRISK, isolate
from web_server import Reply, WebServer

from qabench.errors import InputError
from qabench.io.http import HttpClient
from qabench.retrieval.wiki.client import wiki_content, wiki_search, wikipedia
from qabench.retrieval.wiki.kiwix import Kiwix
from qabench.retrieval.wiki.page import PageMissing, WikiError, WikiPage

pytest.importorskip("markdownify", reason="needs the extra retrieval")

ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Search</title>
<entry><title>Grey heron</title><link href="/content/b/Grey_heron"/></entry>
<entry><title>Mute swan</title><link href="/content/b/Mute_swan"/></entry>
<entry><title>No link</title></entry></feed>"""
RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>Search</title><link>/search?x</link>
<item><title>Grey heron</title><link>/b/A/Grey_heron</link><book><title>Birds</title></book></item></channel></rss>"""
BAR = '<span class="kiwix"><span id="kiwixtoolbar"><div><a href="/"><button>Home</button></a></div></span></span>'
CATALOG = """<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="" type="application/atom+xml"/>
<entry><link type="image/png" href="/x"/><link type="text/html" href="/content/b"/></entry></feed>"""


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)
    monkeypatch.setenv("QABENCH_OFFLINE", "1")  # a server configured by the user is still used


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


def kiwix_of(server: WebServer, prefix: str = "") -> Kiwix:
    return Kiwix(f"{server.url}{prefix}/", "b", client=HttpClient(retry=BRISK))


@pytest.mark.parametrize(
    ("feed", "count"),
    [
        (ATOM, 2),
        (ATOM.replace(' xmlns="http://www.w3.org/2005/Atom"', ""), 2),
        (RSS, 1),
        (ATOM.replace("<entry>", "<x>").replace("</entry>", "</x>"), 0),
    ],
)
def test_search_reads_both_kinds_of_feed(server: WebServer, feed: str, count: int) -> None:
    server.pages["/search"] = Reply(feed.encode())
    pages = kiwix_of(server).search("wading birds?", 3)
    assert len(pages) == count
    assert [page.title for page in pages][:1] == ["Grey heron"][:count]
    assert all(page.pageid is None and page.url and page.url.startswith("/") for page in pages)
    expected = {
        "pattern": ["wading birds?"],
        "start": ["0"],
        "pageLength": ["3"],
        "books.name": ["b"],
        "format": ["xml"],
    }
    assert parse_qs(urlsplit(server.requests[0][0]).query) == expected


def test_search_errors(server: WebServer) -> None:
    server.pages["/catalog/search"] = Reply(CATALOG.encode())
    server.pages["/search"] = Reply(b"<error>No such book: b</error>", 400)
    with pytest.raises(WikiError, match=r"status 400; .* Its catalog has 'b'\."):
        kiwix_of(server).search("x")
    server.pages["/search"] = Reply(b"<html><p>a page for people</html>")
    with pytest.raises(WikiError, match=r"not XML: .*\(tries: 3\)"):
        kiwix_of(server).search("x")
    with pytest.raises(InputError, match="results from 1 to 500"):
        kiwix_of(server).search("x", 0)


@pytest.mark.parametrize("place", ["/content/b/", "/content/b/A/", "/b/A/", "/b/"])
def test_content_by_title_wherever_the_server_has_it(server: WebServer, place: str) -> None:
    html = f"<html><head><title>T</title></head><body>{BAR}<p>Text</p></body></html>"
    server.pages[f"{place}Bj%C3%B6rk_%3F"] = Reply(html.encode())
    row = {"title": "Björk ?", "pageid": 7, "revid": 8, "url": "https://en.wikipedia.org/wiki/Bj%C3%B6rk_%3F"}
    assert kiwix_of(server).content(row).strip() == "Text"


def test_content_by_link_with_a_prefix(server: WebServer) -> None:
    server.pages["/wiki/content/b/Heron"] = Reply(b"<p>Heron</p>")
    for link in ("/wiki/content/b/Heron", "/content/b/Heron", f"{server.url}/wiki/content/b/Heron"):
        assert kiwix_of(server, "/wiki").content(WikiPage("x", url=link)).strip() == "Heron"
    assert server.paths() == ["/wiki/content/b/Heron"] * 3


def test_a_missing_page(server: WebServer) -> None:
    server.pages["/catalog/search"] = Reply(CATALOG.encode())
    with pytest.raises(PageMissing, match=r"the book 'b' of http.* has no page with this title. Its catalog has 'b'"):
        kiwix_of(server).content({"title": "Dodo"})
    server.pages["/catalog/search"] = Reply(b"", 403)
    with pytest.raises(PageMissing, match="catalog cannot be read"):
        kiwix_of(server).content({"title": "", "pageid": 4})
    server.pages["/content/b/Dodo"] = Reply(b"", 403)
    with pytest.raises(WikiError, match="status 403"):
        kiwix_of(server).content({"title": "Dodo"})


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(wikipedia()).__name__ == "MediaWiki"
    monkeypatch.setenv("FANOUTQA_WIKIPEDIA_TYPE", "kiwix")
    monkeypatch.setenv("FANOUTQA_KIWIX_ZIMNAME", "b")
    with pytest.raises(InputError, match="kiwix, but FANOUTQA_KIWIX_BASE is not set"):
        wikipedia()
    monkeypatch.setenv("FANOUTQA_KIWIX_BASE", "http://localhost:8888/")
    assert isinstance(wikipedia(), Kiwix) and wikipedia() is wikipedia()
    monkeypatch.setenv("FANOUTQA_WIKIPEDIA_TYPE", "encarta")
    with pytest.raises(InputError, match="'encarta'; allowed: live, kiwix"):
        wikipedia()


BIRDS = {
    "Birds": "<h1>Birds</h1><p>An overview.</p>",
    "Grey heron": "<h1>Grey heron</h1><p>A <a href='Bird'>wading</a> bird, eats fish.</p>"
    "<table><tr><th>Year</th><th>Count</th></tr><tr><td>1999</td><td>2</td></tr></table><script>no()</script>",
    "Mute swan": "<h1>Mute swan</h1><p>A waterbird, seldom eats fish.</p><img src='x.png' alt='A swan'>",
    "What? A bird": "<p>An odd title.</p>",
}


@pytest.mark.integration
@pytest.mark.skipif(kiwix_server.why_not() is not None, reason=str(kiwix_server.why_not()))
@pytest.mark.parametrize(("below", "prefix"), [("A/", ""), ("", "/library")])
def test_the_real_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str, prefix: str) -> None:
    with KiwixServer(tmp_path, BIRDS, {"Heron": "Grey heron"}, below, prefix) as real:
        monkeypatch.setenv("FANOUTQA_WIKIPEDIA_TYPE", "kiwix")
        monkeypatch.setenv("FANOUTQA_KIWIX_BASE", real.base)
        monkeypatch.setenv("FANOUTQA_KIWIX_ZIMNAME", BOOK)
        found = wiki_search("fish")
        assert {page.title for page in found} == {"Grey heron", "Mute swan"}
        assert [page.title for page in wiki_search("fish", results=1)] == [found[0].title]
        assert wiki_search("platypus") == []
        texts = {page.title: wiki_content(page) for page in found}
        assert "![A swan](image)" in texts["Mute swan"]
        by_title = wiki_content({"title": "Grey heron", "pageid": 12, "revid": 13, "url": "https://en.wikipedia.org/x"})
        assert by_title == texts["Grey heron"] == wiki_content({"title": "Heron"})
        assert "# Grey heron" in by_title and "A wading bird, eats fish." in by_title
        assert "| Year | Count |" in by_title and "| 1999 | 2 |" in by_title
        for gone in ("no()", "Home", "Search", "🏠"):
            assert gone not in by_title
        assert wiki_content({"title": "What? A bird"}).strip() == "An odd title."
        with pytest.raises(PageMissing, match=rf"has no page with this title\. Its catalog has '{BOOK}'"):
            wiki_content({"title": "Dodo"})
        wrong = Kiwix(real.base, "mammals", client=HttpClient(retry=BRISK))
        with pytest.raises(WikiError, match=rf"'mammals' a book with a full-text index\? Its catalog has '{BOOK}'"):
            wrong.search("fish")
        wikipedia().client.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("encoding", ["undefined", "idna", "punycode", "no-such", "utf-32"])
def test_an_unusable_encoding_of_xml(server: WebServer, encoding: str) -> None:
    server.pages["/search"] = Reply(f"<?xml version='1.0' encoding='{encoding}'?><rss/>".encode())
    with pytest.raises(WikiError, match="not XML"):
        kiwix_of(server).search("x")
