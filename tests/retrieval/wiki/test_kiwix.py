"""Kiwix: a scripted server for all forms of responses, and a real server."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mediawiki_server import free_port, wait_for
from scripted_wiki import BRISK
from web_server import Reply, WebServer

from qabench.errors import InputError
from qabench.io.http import HttpClient
from qabench.retrieval.wiki.client import wiki_content, wiki_search, wikipedia
from qabench.retrieval.wiki.kiwix import Kiwix
from qabench.retrieval.wiki.page import PageMissing, WikiError

BAR = '<span class="kiwix"><span id="kiwixtoolbar"><div><a href="/"><button>Home</button></a></div></span></span>'
BIRDS = {
    "Birds": "<h1>Birds</h1><p>An overview.</p>",
    "Grey heron": "<h1>Grey heron</h1><p>A <a href='Bird'>wading</a> bird, eats fish.</p>"
    "<table><tr><th>Year</th><th>Count</th></tr><tr><td>1999</td><td>2</td></tr></table><script>no()</script>",
    "Mute swan": "<h1>Mute swan</h1><p>A waterbird, seldom eats fish.</p><img src='x.png' alt='A swan'>",
    "What? A bird": "<p>An odd title.</p>",
}
PAGE = "<!DOCTYPE html><html><head><title>{title}</title><meta charset='utf-8'></head><body>{body}</body></html>"


@pytest.fixture(autouse=True)
def offline(isolated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_OFFLINE", "1")  # a server configured by the user is still used


def kiwix_of(web: WebServer) -> Kiwix:
    return Kiwix(f"{web.url}/", "b", client=HttpClient(retry=BRISK))


def test_search_errors(web: WebServer) -> None:
    web.pages["/search"] = Reply(b"<error>No such book: b</error>", 400)
    with pytest.raises(WikiError, match=r"searching the book 'b' failed: .*status 400"):
        kiwix_of(web).search("x")
    web.pages["/search"] = Reply(b"<html><p>a page for people</html>")
    with pytest.raises(WikiError, match=r"not XML: .*\(tries: 3\)"):
        kiwix_of(web).search("x")
    with pytest.raises(InputError, match="results from 1 to 500"):
        kiwix_of(web).search("x", 0)


@pytest.mark.parametrize("place", ["/content/b/", "/b/"])
def test_content_by_title(web: WebServer, place: str) -> None:
    html = f"<html><head><title>T</title></head><body>{BAR}<p>Text</p></body></html>"
    web.pages[f"{place}Bj%C3%B6rk_%3F"] = Reply(html.encode())
    row = {"title": "Björk ?", "pageid": 7, "revid": 8, "url": "https://en.wikipedia.org/wiki/Bj%C3%B6rk_%3F"}
    assert kiwix_of(web).content(row).strip() == "Text"


def test_a_missing_page(web: WebServer) -> None:
    for row in ({"title": "Dodo"}, {"title": "", "pageid": 4}):
        with pytest.raises(PageMissing, match=r"the book 'b' of http.* has no such page"):
            kiwix_of(web).content(row)
    web.pages["/content/b/Dodo"] = Reply(b"", 403)
    with pytest.raises(WikiError, match="status 403"):
        kiwix_of(web).content({"title": "Dodo"})


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


@pytest.fixture(params=["", "/library"])
def real(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a real server with the pages about birds, below a path or not."""
    pytest.importorskip("libzim", reason="needs the extra zim")
    from zim_files import write_zim

    pages = {title: PAGE.format(title=title, body=body) for title, body in BIRDS.items()}
    zim = write_zim(tmp_path / "birds.zim", pages, {"Heron": "Grey heron"}, full_text=True)
    port, log = free_port(), tmp_path / "server.log"
    command = ["kiwix-serve", "--address", "127.0.0.1", "--port", str(port), "-r", request.param or "/", str(zim)]
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    wait_for(f"http://127.0.0.1:{port}{request.param}/catalog/search", server, log)
    yield f"http://127.0.0.1:{port}{request.param}"
    server.terminate()
    server.wait(timeout=60)


@pytest.mark.integration
@pytest.mark.skipif(shutil.which("kiwix-serve") is None, reason="needs apt-get install kiwix-tools")
def test_the_real_server(real: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANOUTQA_WIKIPEDIA_TYPE", "kiwix")
    monkeypatch.setenv("FANOUTQA_KIWIX_BASE", real)
    monkeypatch.setenv("FANOUTQA_KIWIX_ZIMNAME", "birds")
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
    with pytest.raises(PageMissing, match="has no such page"):
        wiki_content({"title": "Dodo"})
    wrong = Kiwix(real, "mammals", client=HttpClient(retry=BRISK))
    with pytest.raises(WikiError, match="searching the book 'mammals' failed"):
        wrong.search("fish")
    wikipedia().client.close()  # type: ignore[attr-defined]
