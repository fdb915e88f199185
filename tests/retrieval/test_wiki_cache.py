"""Wikipedia's pages in the cache: folders, damage, titles, full disks; importing only pages from tarballs."""

import gzip
import io
import pickle
import random
import tarfile
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tarballs import tarball

from qabench.benchmarks.fanoutqa.official import DECLARATIONS
from qabench.errors import InputError, QabenchError
from qabench.loading_scripts.fanoutqa.parse import read_rows
from qabench.retrieval.wiki import tarball as wiki_import
from qabench.retrieval.wiki.cache import WikiCache, official_folder
from qabench.retrieval.wiki.client import wikipedia
from qabench.retrieval.wiki.kiwix import Kiwix
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.retrieval.wiki.tarball import Imported, import_cache

TEXT = "# Jupiter\n\nA gas giant – the largest.\n"
PAGES = {f"{n}-dated.md": random.Random(n).randbytes(900).hex() for n in range(1, 9)}


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


def files(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file() or p.is_symlink()}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_pages_are_imported_from_any_folder(tmp_path: Path, mode: str) -> None:
    members = [("wikicache/1-dated.md", "one"), ("./2-dated.md", "zwei – ü"), ("a/b/c/38930-dated.md", "three")]
    path = tarball(tmp_path / "pages.tar", members, mode)
    told: list[tuple[int, int]] = []
    cache = WikiCache(tmp_path / "to")
    assert import_cache(path, cache, lambda *counts: told.append(counts)) == Imported(written=3, verified=mode != "w")
    assert files(cache.folder) == {"1-dated.md": "one", "2-dated.md": "zwei – ü", "38930-dated.md": "three"}
    assert told[-1][0] <= told[-1][1] == 2 * path.stat().st_size
    assert import_cache(path, cache) == Imported(present=3, verified=mode != "w")


def test_other_files_are_ignored_and_blank_pages_counted(tmp_path: Path) -> None:
    names = ["README.md", "###TBD###-dated.md", "0-dated.md", "01-dated.md", "x1-dated.md", "٣-dated.md"]
    members = [(name, "x") for name in names] + [("9-dated.md", " \n"), ("8-dated.md", "eight")]
    assert import_cache(tarball(tmp_path / "pages.tar", members)) == Imported(written=1, blank=1, ignored=6)
    assert files(WikiCache().folder) == {"8-dated.md": "eight"}


def test_escaping_paths_are_rejected(tmp_path: Path) -> None:
    names = ["/etc/1-dated.md", "../1-dated.md", "a/../../1-dated.md", "\udcff/../7-dated.md"]
    members = [*((name, "evil") for name in names), ("2-dated.md", "good")]
    done = import_cache(tarball(tmp_path / "pages.tar", members))
    assert (done.written, [name for name, _ in done.refused[:3]]) == (1, names[:3])
    assert all("leads out" in reason for _, reason in done.refused)
    assert done.refused[3][0].encode("utf-8")  # can be printed
    assert files(tmp_path / "cache") == {"wikicache/2-dated.md": "good"}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_rejected(tmp_path: Path, kind: bytes) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    done = import_cache(tarball(tmp_path / "pages.tar", [("1-dated.md", str(secret)), ("link", "/etc")], kind=kind))
    assert (done.written, len(done.refused)) == (0, 2) and not (tmp_path / "cache").exists()


def test_large_pages_and_other_content_than_text_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [("1-dated.md", b"\xff\xfe"), ("2-dated.md", b"a\0b"), ("3-dated.md", "x" * 101), ("4-dated.md", "y" * 100)]
    monkeypatch.setattr(wiki_import, "LARGEST_PAGE", 100)
    done = import_cache(tarball(tmp_path / "pages.tar", pages))
    assert [reason.partition(" ")[0] for _, reason in done.refused] == ["not", "damaged:", "101"]
    assert done.written == 1


@pytest.mark.parametrize("content", [b"", b"no tarball at all", b"\x1f\x8b but no gzip", b"BZh9 no"])
def test_other_files_than_tarballs(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pages.tar").write_bytes(content)
    with pytest.raises(InputError, match=r"pages\.tar is not a tarball"):
        import_cache(tmp_path / "pages.tar")
    with pytest.raises(InputError, match="cannot read the tarball"):
        import_cache(tmp_path / "nothing.tar")


@settings(max_examples=60, deadline=None)
@given(mode=st.sampled_from(["w", "w:gz"]), kind=st.sampled_from(["cut", "flip", "drop"]), place=st.floats(0, 1))
def test_a_damaged_tarball_changes_nothing(mode: str, kind: str, place: float) -> None:
    """Only flipped bits in the text of a page of a plain tarball are not noticed, which has no checksums."""
    with tempfile.TemporaryDirectory() as folder:
        path = tarball(Path(folder) / "pages.tar", list(PAGES.items()), mode)
        data = path.read_bytes()
        at = min(int(len(data) * place), len(data) - 1)
        end = {"cut": b"", "drop": data[at + 1 :], "flip": bytes([data[at] ^ 4]) + data[at + 1 :]}[kind]
        path.write_bytes(data[:at] + end)
        cache = WikiCache(Path(folder) / "cache")
        try:
            done = import_cache(path, cache)
        except QabenchError:
            assert not cache.folder.exists()
        else:
            stored = files(cache.folder)
            assert len(stored) == done.written == len(PAGES)
            assert stored == PAGES or (mode == "w" and kind == "flip" and not done.verified)


def _header(kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo("1-dated.md")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "content",
    [
        _header(tarfile.GNUTYPE_LONGNAME, 4 << 30) + bytes(1 << 22),
        _header(tarfile.XHDTYPE, 200_000) + b"1" * 200_192 + bytes(1024),
        _header(tarfile.XHDTYPE, 512) + b"9" * 512 + bytes(1024),
        _header(tarfile.REGTYPE, 1 << 50) + bytes(1024),
        _header(tarfile.REGTYPE, -1) + bytes(1024),
    ],
)
def test_headers_that_declare_too_much_are_rejected(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(content))
    tracemalloc.start()
    with pytest.raises(QabenchError, match=r"bomb\.tar\.gz is (damaged|not a tarball)"):
        import_cache(path)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_long_names_are_read(tmp_path: Path) -> None:
    name = "a" * 300 + "/7-dated.md"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        with tarfile.open(tmp_path / "long.tar.gz", "w:gz", format=form) as tar:
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
        cache = WikiCache(tmp_path / str(form))
        assert import_cache(tmp_path / "long.tar.gz", cache) == Imported(written=1)
        assert files(cache.folder) == {"7-dated.md": "abc"}
