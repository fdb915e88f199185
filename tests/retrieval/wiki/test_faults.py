"""Wikipedia over a bad connection: faults are retried or reported; the server is not overloaded."""

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from scripted_wiki import BRISK, Fault, ScriptedWiki, api_error, wiki_of

from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import retry_after
from qabench.retrieval.wiki.cache import WikiCache
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import PageMissing, WikiError, WikiPage

TEXT = "Text of page 1."
PASSING = {
    "429": Fault(429, headers={"Retry-After": "0"}),
    "503": Fault(503),
    "maxlag": api_error("maxlag", Retry_After="0"),
    "ratelimited": api_error("ratelimited"),
    "internal error": api_error("internal_api_error_DBQueryError"),
    "half an answer": Fault(body=b'{"parse": {"text": "half"}}', drop_after=15),
    "not JSON": Fault(body=b"<html>Our servers are currently under maintenance</html>"),
    "not an object": Fault(body=b"[]"),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_transient_fault_is_retried(server: ScriptedWiki, wiki: MediaWiki, name: str) -> None:
    """A fault that lasts for all tries is an error, and nothing is cached; two faults are retried."""
    server.faults.extend([PASSING[name]] * 5)
    with pytest.raises(WikiError, match=r"api\.php: .*\(tries: 3\)"):
        wiki.content(server.row(1))
    assert wiki.cached(WikiPage.of(server.row(1))) is None
    assert wiki.content(server.row(1)).strip() == TEXT and len(server.requests) == 6
    assert all(request == server.requests[0] for request in server.requests)


@pytest.mark.parametrize(
    ("fault", "message"),
    [(Fault(403), "status 403"),
     (api_error("badvalue"), "api.php: badvalue: about badvalue"),
     (Fault(body=b'{"error": "odd"}'), "unknown: no details"),
     (Fault(body=b'{"batchcomplete": true}'), "no parse.text"),
     (Fault(body=b'{"parse": {"text": ["<p>x</p>"]}}'), r"no parse\.text of type str")],
)  # fmt: skip
def test_a_rejection_is_not_retried(server: ScriptedWiki, wiki: MediaWiki, fault: Fault, message: str) -> None:
    server.faults.append(fault)
    with pytest.raises(WikiError, match=message):
        wiki.content(server.row(1))
    assert len(server.requests) == 1


def test_no_server(tmp_path: Path) -> None:
    with ScriptedWiki() as gone:
        pass
    wiki = wiki_of(gone, tmp_path)
    with pytest.raises(WikiError, match=r"connection failed: .*refused.*wiki prefetch.*kiwix"):
        wiki.search("anything")
    nonsense = MediaWiki("no address", cache=WikiCache(tmp_path), client=HttpClient(retry=BRISK))
    with pytest.raises(WikiError, match="no address: invalid URL"):
        nonsense.search("anything")


def test_retry_after_delays_all_threads(server: ScriptedWiki, tmp_path: Path) -> None:
    """The server asks for a wait of one second: no thread sends a request before, of which one at a
    time is sent.
    """
    wiki = wiki_of(server, tmp_path, in_flight=1)
    server.faults.extend([Fault(429, headers={"Retry-After": "1"})] * 2)
    with ThreadPoolExecutor(5) as threads:
        texts = list(threads.map(lambda n: wiki.content(server.row(n)).strip(), range(1, 6)))
    assert texts == [f"Text of page {n}." for n in range(1, 6)]
    told = max(server.times[:2])
    assert all(asked - told >= 0.9 for asked in server.times[2:]) and len(server.requests) == 7


def test_a_wait_longer_than_allowed_is_reported(server: ScriptedWiki, wiki: MediaWiki) -> None:
    server.faults.append(Fault(429, headers={"Retry-After": "3600"}))
    with pytest.raises(WikiError, match=r"status 429: .*; retry after 3600 s"):
        wiki.content(server.row(1))
    assert len(server.requests) == 1


def test_closing_ends_the_waits(server: ScriptedWiki, tmp_path: Path) -> None:
    wiki = wiki_of(server, tmp_path, retry=Retry(attempts=3, longest_wait=600.0))
    server.faults.append(Fault(429, headers={"Retry-After": "500"}))
    threading.Timer(0.3, wiki.client.close).start()
    with pytest.raises(WikiError, match="closed while a request waited"):
        wiki.content(server.row(1))


def test_retry_after() -> None:
    def wait(value: str) -> float | None:
        return retry_after({"retry-after": value})

    assert retry_after({}) is wait("soon") is None and wait(" 7 ") == 7.0
    assert wait("Thu, 01 Jan 1970 00:00:00 GMT") == 0.0
    in_a_minute = wait(formatdate(time.time() + 60, usegmt=True))
    assert in_a_minute is not None and 50 < in_a_minute <= 60


def test_a_full_disk_is_only_a_warning(server: ScriptedWiki, wiki: MediaWiki, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="No space left on device; the page is not cached"):
        assert wiki.content(server.row(1)).strip() == TEXT
    assert not list(wiki.cache.folder.iterdir())


def test_a_page_by_title_is_cached(server: ScriptedWiki, wiki: MediaWiki) -> None:
    row = {"title": "Page 3", "pageid": "###TBD###", "revid": "###TBD###"}
    assert wiki.content(row).strip() == "Text of page 3."
    (agent,) = server.agents
    assert agent is not None and agent.startswith("qabench/") and "https://" in agent
    assert server.requests[0]["maxlag"] == "5" and wiki.cache.path(3).is_file()
    asked = len(server.requests)
    assert wiki.content(row).strip() == "Text of page 3." and len(server.requests) == asked == 2


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"title": "Page 1", "pageid": 1, "revid": 77}, r"There is no revision with ID 77. \(nosuchrevid\)"),
        ({"title": "Nowhere", "pageid": None}, "no such page"),
        ({"title": "", "pageid": 99}, "no such page"),
        ({"title": "Page 1|Page 2", "pageid": None}, "a title cannot contain '|'"),
        ({"title": "Blank", "pageid": None}, "revision 1050, the newest at the epoch .*, is blank"),
        ({"title": "Loop", "pageid": None}, "more than 3 redirects"),
        ({"title": "Bad", "pageid": None}, "no such page"),
    ],
)
def test_a_missing_page_is_reported(server: ScriptedWiki, wiki: MediaWiki, row: dict[str, Any], reason: str) -> None:
    def redirect(target: str) -> str:
        return f'<div class="redirectMsg"><ul class="redirectText"><li><a href="#">{target}</a></li></ul></div>'

    server.pages["Blank"] = (50, 1050, "<div>\n</div>")
    server.pages["Loop"] = (51, 1051, redirect("Loop#Here"))
    server.pages["Bad"] = (52, 1052, redirect("Nowhere"))
    with pytest.raises(PageMissing, match=reason) as caught:
        wiki.content(row)
    assert caught.value.page.title == row["title"] and not list(wiki.cache.folder.glob("*.md"))


def test_a_title_of_another_wiki(server: ScriptedWiki, wiki: MediaWiki) -> None:
    server.faults.extend([Fault(body=b'{"query": {"interwiki": [{"title": "fr:Terre", "iw": "fr"}]}}')] * 2)
    with pytest.raises(PageMissing, match="leads to another wiki"):
        wiki.content({"title": "fr:Terre"})


def test_offline_uses_only_the_cache(server: ScriptedWiki, wiki: MediaWiki, monkeypatch: pytest.MonkeyPatch) -> None:
    wiki.content(WikiPage("Page 1"))
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    assert wiki.content(server.row(1)).strip() == TEXT and wiki.lookup("Page 1") == WikiPage("Page 1", 1)
    for call in (lambda: wiki.content(server.row(2)), lambda: wiki.lookup("Page 2")):
        with pytest.raises(WikiError, match=r"QABENCH_OFFLINE is set.*wiki prefetch"):
            call()
    assert len(server.requests) == 2


def test_a_wiki_on_this_machine_is_not_the_hub(
    server: ScriptedWiki, wiki: MediaWiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert wiki.content(server.row(2)).strip() and wiki.lookup("Page 2") == WikiPage("Page 2", 2)
    wiki.api = "https://wiki.example/w/api.php"
    with pytest.raises(WikiError, match="HF_HUB_OFFLINE is set"):
        wiki.lookup("Page 3")


def test_lookup_returns_pages_and_lists_of_pages(server: ScriptedWiki, wiki: MediaWiki) -> None:
    items = '<li class="tocsection-1"><a>Contents</a></li><li><a>Mercury (planet)</a>, or not</li><li>none</li>'
    server.pages["Mercury"] = (99, 90, f'<ul class="disambig">{items}<li><a>Mercury (element)</a></li></ul>')
    assert wiki.lookup("Page 2") == WikiPage("Page 2", 2)
    assert wiki.lookup("Mercury") == ["Mercury (element)", "Mercury (planet)"]
    for title in ("nothing", "a|b"):
        with pytest.raises(PageMissing):
            wiki.lookup(title)
