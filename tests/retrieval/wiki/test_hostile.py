"""Hostile wikis: ids that are paths, redirects to other hosts, malformed answers and HTML, endless
answers.
"""

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_wiki import Fault, ScriptedWiki

from qabench.errors import InputError
from qabench.io.http_error import HttpError
from qabench.retrieval.wiki.cache import WikiCache
from qabench.retrieval.wiki.markdown import to_markdown
from qabench.retrieval.wiki.mediawiki import MediaWiki, _options, _redirect_target
from qabench.retrieval.wiki.page import PageUnreadable, WikiError, WikiPage
from qabench.retrieval.wiki.prefetch import prefetch

BAD_IDS: list[Any] = ["../../../x", "1", 0, -1, 1.5, True, None, [], 10**18, 10**400]
SEARCHED: dict[str, Any] = {"query": {"search": [{"title": "A", "pageid": 1}]}}
FOUND: dict[str, Any] = {"query": {"pages": [{"pageid": 1, "title": "A", "revisions": [{"revid": 2}]}]}}
PARSED: dict[str, Any] = {"parse": {"text": "<p>x</p>"}}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
REDIRECT = '<div class="redirectMsg">'


@pytest.mark.parametrize("pageid", BAD_IDS, ids=lambda value: f"{value!r:.12}")
def test_invalid_ids_are_rejected(server: ScriptedWiki, wiki: MediaWiki, tmp_path: Path, pageid: Any) -> None:
    found = {"query": {"pages": [{"pageid": pageid, "title": "A", "revisions": [{"revid": 2}]}]}}
    server.faults.append(Fault(body=json.dumps(found).encode()))
    with pytest.raises(WikiError, match="no pageid that is a positive number"):
        wiki.content({"title": "A"})
    server.faults.append(Fault(body=json.dumps({"query": {"search": [{"title": "A", "pageid": pageid}]}}).encode()))
    with pytest.raises(WikiError, match="no pageid that is a positive number"):
        wiki.search("A")
    with pytest.raises(InputError, match="is not a page id"):
        wiki.cache.write(pageid, "text")
    if pageid is not None:
        with pytest.raises(InputError, match="not a positive number"):
            WikiPage("A", pageid)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_title_s_file_with_a_path_for_an_id(tmp_path: Path) -> None:
    cache = WikiCache(tmp_path)
    cache.remember_title("A", 7)
    (file,) = (tmp_path / "titles").iterdir()
    for text in ('{"title": "A", "pageid": "../7"}', '{"title": "A", "pageid": -7}', "[" * 100_000, "[]", "\xff"):
        file.write_text(text, encoding="latin-1")
        assert cache.pageid_of("A") is None


@pytest.mark.parametrize("target", ["http://localhost:{port}/w/api.php", "http://127.0.0.1:9/x", "file:///etc/passwd"])
def test_redirects_to_other_hosts_are_rejected(server: ScriptedWiki, wiki: MediaWiki, target: str) -> None:
    port = server.api.split(":")[2].split("/")[0]
    server.faults.append(Fault(status=302, headers={"Location": target.format(port=port)}))
    with pytest.raises(WikiError):
        wiki.content(server.row(1))
    assert len(server.requests) == 1


def test_redirects_within_the_host_are_followed(server: ScriptedWiki, wiki: MediaWiki) -> None:
    # a malformed one is tried again
    for target in ("/w/api.php?action=parse&oldid=1001", "http://[::1"):
        server.faults.append(Fault(status=301, headers={"Location": target}))
    assert wiki.content(server.row(1)).strip() == "Text of page 1."
    targets = [f"/w/api.php?action=parse&oldid={number}" for number in range(6)]
    server.faults.extend(Fault(status=301, headers={"Location": target}) for target in targets)
    with pytest.raises(WikiError, match="too many redirects: more than 5"):
        wiki.content(server.row(2))


def replaced(answer: Any, path: list[int], junk: Any) -> Any:
    """The response with one value of the tree replaced."""
    if not path or not isinstance(answer, dict | list) or not answer:
        return junk
    keys = list(answer) if isinstance(answer, dict) else range(len(answer))
    key = keys[path[0] % len(keys)]
    copy = answer.copy()
    copy[key] = replaced(answer[key], path[1:], junk)
    return copy


class Scripted:
    """A client that reads the given responses."""

    in_flight = 1

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers

    def get(self, url: str, read: Any, params: Any) -> Any:
        body = json.dumps(self.answers.pop(0) if self.answers else {}).encode()
        try:
            return read(httpx2.Response(200, content=body))
        except HttpError as error:
            raise WikiError(error.reason) from None


@given(st.integers(0, 2), st.lists(st.integers(0, 3), max_size=6), JUNK)
def test_malformed_responses_are_wiki_errors(which: int, path: list[int], junk: Any) -> None:
    answers = [SEARCHED, FOUND, PARSED]
    answers[which] = replaced(answers[which], path, junk)
    wiki = MediaWiki("http://a", cache=WikiCache(Path("/nonexistent"), shared=[]), client=Scripted(answers))  # type: ignore[arg-type]
    for action in (lambda: wiki.search("A"), lambda: wiki.fetch(WikiPage("A"))):
        with contextlib.suppress(WikiError):
            action()


@given(JUNK)
def test_malformed_properties_of_a_page(junk: Any) -> None:
    answer = {"query": {"pages": [{"pageid": 1, "title": "A", "pageprops": junk}]}}
    assert MediaWiki("http://a", client=Scripted([answer])).lookup("A") == WikiPage("A", 1)  # type: ignore[arg-type]


def test_broken_pages_do_not_end_a_prefetch(server: ScriptedWiki, wiki: MediaWiki) -> None:
    server.pages |= {f"Broken {n}": (100 + n, 2000 + n, "<![é") for n in range(8)}
    rows = [{"title": f"Broken {n}", "pageid": 100 + n, "revid": 2000 + n} for n in range(8)]
    done = prefetch([*rows, *(server.row(n) for n in (1, 2, 3))], wiki)
    assert (done.fetched, len(done.failed), done.not_tried) == (3, 8, 0)


@pytest.mark.parametrize(
    "part",
    ["<", "<!--", "<a ", '<a x="', "<li>", "&", "*_", "<p>", "<p a=/x>", "<p></b>", "<ul><li>", "<ul><li>x<a>y</a>"],
)
@pytest.mark.parametrize("read", [to_markdown, _options, lambda html: _redirect_target(REDIRECT + html)])
def test_html_takes_linear_time(part: str, read: Callable[[str], object]) -> None:
    seconds = []
    for size in (20_000, 200_000):
        html = (part * size)[:size]
        start = time.thread_time()
        with contextlib.suppress(PageUnreadable):
            read(html)
        seconds.append(time.thread_time() - start)
    assert seconds[1] < 30 * seconds[0] + 3.0
