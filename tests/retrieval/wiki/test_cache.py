"""Wikipedia's pages in the cache: folders, damage, titles, full disks."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from qabench.benchmarks.fanoutqa.official import DECLARATIONS
from qabench.errors import InputError, QabenchError
from qabench.loading_scripts.fanoutqa.parse import read_rows
from qabench.retrieval.wiki.cache import WikiCache, official_folder
from qabench.retrieval.wiki.client import wikipedia
from qabench.retrieval.wiki.kiwix import Kiwix
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import PageMissing, WikiPage

TEXT = "# Jupiter\n\nA gas giant – the largest.\n"


def put(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_the_official_folder_is_only_read(tmp_path: Path) -> None:
    assert official_folder() == tmp_path / "home/.cache/fanoutqa/wikicache"
    put(official_folder() / "5-dated.md", TEXT)
    cache = WikiCache()
    assert cache.read(5) == TEXT
    cache.write(5, "ours")
    assert (tmp_path / "cache/wikicache/5-dated.md").read_text() == cache.read(5) == "ours"
    assert (official_folder() / "5-dated.md").read_text(encoding="utf-8") == TEXT


def test_another_wiki_is_named_and_has_its_own_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = DECLARATIONS["fanout_acc"]["wikipedia"]
    assert MediaWiki().name == "dated" and declared.accepts("dated")
    MediaWiki().cache.write(1, TEXT)
    monkeypatch.setenv("QABENCH_WIKIPEDIA_API", "http://user:secret@127.0.0.1:9/w/api.php?key=secret")
    assert wikipedia().name == "the wiki at 127.0.0.1:9/w/api.php" and not declared.accepts(wikipedia().name)
    other = MediaWiki().cache
    assert other.read(1) is None
    other.write(2, TEXT)
    monkeypatch.delenv("QABENCH_WIKIPEDIA_API")
    assert MediaWiki().cache.read(1) == TEXT and MediaWiki().cache.read(2) is None
    book = Kiwix("http://user:secret@localhost:8888", "wikipedia_en")
    assert book.name == "the Kiwix book wikipedia_en at localhost:8888"


def test_the_variable_and_the_argument_name_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_WIKICACHE", "~/pages")
    WikiCache().write(1, TEXT)
    assert (tmp_path / "home/pages/1-dated.md").is_file() and WikiCache(tmp_path / "else").folder == tmp_path / "else"


@pytest.mark.parametrize("damaged", [b"", b" \n", "Zürich".encode()[:2], b"half a page\0\0\0", b"\xff\xfe"])
def test_a_damaged_file_counts_as_absent(damaged: bytes) -> None:
    put(WikiCache().path(7), damaged)
    assert WikiCache().read(7) is None
    put(official_folder() / "7-dated.md", TEXT)
    assert WikiCache().read(7) == TEXT, "another folder may have it whole"


def test_an_unreadable_file_is_an_error() -> None:
    WikiCache().path(8).mkdir(parents=True)
    with pytest.raises(QabenchError, match=r"cannot read the cached page .*8-dated\.md"):
        WikiCache().read(8)


def test_titles() -> None:
    cache = WikiCache()
    for title in ("Giant planet", "AC/DC", "../../etc", "Ünï" * 300, "a\0b"):
        assert cache.pageid_of(title) is None
        cache.remember_title(title, 42)
        assert cache.pageid_of(title) == 42
    assert cache.pageid_of("giant planet") is None
    assert {path.parent for path in cache.folder.rglob("*.json")} == {cache.folder / "titles"}
    for path in cache.folder.rglob("*.json"):
        put(path, '{"title": "Giant pl')
    assert cache.pageid_of("Giant planet") is None


def test_a_lazy_revision_is_not_looked_up() -> None:
    """The official package's search results send a request when their ``revid`` is read."""
    models = pytest.importorskip("fanoutqa.wiki", reason="needs the extra parity")
    assert WikiPage.of(models.LazyEvidence("Jupiter", 38930)).revid is None


@pytest.mark.parametrize("evidence", [{}, {"title": " "}, {"title": None, "pageid": "###TBD###"}, "Jupiter", None])
def test_no_page(evidence: Any) -> None:
    with pytest.raises(InputError, match="does not identify a page"):
        WikiPage.of(evidence)


def test_a_missing_page_says_which_and_pickles() -> None:
    error = pickle.loads(pickle.dumps(PageMissing(WikiPage("Jupiter", 38930), "no such id")))
    assert str(error) == "no text for the Wikipedia page 'Jupiter' (page id 38930): no such id"
    assert error.page == WikiPage("Jupiter", 38930)


@pytest.mark.parametrize(("split", "without_page", "without_revision"), [("dev", 82, 83), ("test", 199, 199)])
def test_evidence_of_the_real_questions(mirror: Path, split: str, without_page: int, without_revision: int) -> None:
    path = mirror / f"zhudotexe/fanoutqa/fanoutqa/data/fanout-final-{split}.json"
    rows = [page for row in read_rows(path, split) for page in row["necessary_evidence"]]
    pages = [WikiPage.of(row) for row in rows]
    assert sum(page.pageid is None for page in pages) == without_page
    assert sum(page.revid is None for page in pages) == without_revision and all(page.title for page in pages)


def test_a_page_that_was_cut_off_is_not_served() -> None:
    cache = WikiCache()
    cache.write(7, TEXT)
    assert cache.read(7) == TEXT
    put(cache.path(7), TEXT[:20])  # still a page of text
    with pytest.warns(UserWarning, match=r"7-dated\.md is not as it was downloaded, and is not used"):
        assert cache.read(7) is None
    cache.write(7, TEXT)
    assert cache.read(7) == TEXT
    put(cache.path(8), TEXT[:20])  # of the official package, without a digest
    assert cache.read(8) == TEXT[:20]


@pytest.mark.parametrize("text", ["a\r\nb\r", "\ud800 lone", "a\u2028b"])
def test_the_digest_is_of_the_page_as_it_is_read(text: str) -> None:
    WikiCache().write(7, text)
    assert WikiCache().read(7)
