"""ZIM files: articles, redirects and searches; pages in parts; the index of their passages; runs that use it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("libzim", reason="needs the extra zim")

from scripted_wiki import isolate
from typer.testing import CliRunner
from zim_files import write_zim

from qabench.cli import app
from qabench.errors import InputError
from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.corpus_parts import CorpusParts
from qabench.retrieval.wiki.chunk import chunk_text
from qabench.retrieval.wiki.client import wikipedia
from qabench.retrieval.wiki.markdown import to_markdown
from qabench.retrieval.wiki.page import PageMissing
from qabench.retrieval.wiki.zim import ZimFile, decoded
from qabench.retrieval.wiki.zim_index import IndexedZim, index_zim
from qabench.retrieval.wiki.zim_parts import Parsing, parse_zim

LONG = "".join(f"<p>The heron number {n} eats {n % 7} fish and {n % 5} frogs. It sleeps.</p>" for n in range(60))
CONTENT = "<p>A <b>wading</b> bird.</p><table><tr><th>Year</th></tr><tr><td>1999</td></tr></table>"
PAGES: dict[str, str | bytes] = {
    "Grey heron": f"<html><head><title>Grey heron</title></head><body><h1>Grey heron</h1>{LONG}</body></html>",
    "Mute swan": f'<html><head><style>p{{}}</style></head><body><h1>x</h1><div id="mw-content-text">{CONTENT}</div>'
    "<footer>Issued by nobody</footer></body></html>",
    "Empty": "<html><head><title>Empty</title></head><body> </body></html>",
    "Deep": "<div>" * 3000 + "x" + "</div>" * 3000,
    "Björk": "<meta charset='iso-8859-1'><p>Sang für Vögel</p>".encode("latin-1"),
    **{f"Bird {n}": f"<p>Bird {n} is a bird of the group {n % 3}.</p>" for n in range(30)},
}


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)
    monkeypatch.delenv("QABENCH_ZIM", raising=False)


@pytest.fixture(scope="module")
def zim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zim") / "birds.zim"
    return write_zim(path, PAGES, {"Heron": "Grey heron", "Hern": "Heron"}, full_text=True)


@pytest.fixture(scope="module")
def indexed(zim: Path) -> Path:
    index_zim(zim, zim.parent / "index", workers=1)
    return zim.parent / "index"


def test_articles_without_redirects_and_images(zim: Path) -> None:
    file = ZimFile(zim)
    found = [one for one in file.articles(0, file.size) if one is not None]
    assert {one.title for one in found if not isinstance(one, tuple)} == PAGES.keys()


def test_content_is_the_markdown_of_the_article(zim: Path) -> None:
    file = ZimFile(zim)
    assert file.content({"title": "Mute swan"}) == to_markdown(CONTENT)
    assert file.content({"title": "Heron"}) == file.content({"title": "Grey_heron", "pageid": 7})
    assert file.content({"title": "grey heron"}).count("The heron number") == 60
    assert "Sang für Vögel" in file.content({"title": "Björk"})
    page = file.lookup("Hern")
    assert not isinstance(page, list) and (page.title, page.url) == ("Grey heron", "Grey_heron")


def test_missing_and_blank_pages(zim: Path) -> None:
    file = ZimFile(zim)
    for title, said in (("Dodo", "has no page with this title"), ("Empty", "is blank"), ("image.png", "has no page")):
        with pytest.raises(PageMissing, match=said):
            file.content({"title": title})


def test_the_search_of_the_file(zim: Path, tmp_path: Path) -> None:
    assert [page.title for page in ZimFile(zim).search("wading", 3)] == ["Mute swan"]
    assert ZimFile(zim).search("platypus") == []
    plain = ZimFile(write_zim(tmp_path / "plain.zim", {"Grey heron": "<p>x</p>", "Swan": "<p>y</p>"}))
    assert [page.title for page in plain.search("grey")] == ["Grey heron"]
    with pytest.raises(InputError, match="must not be empty"):
        plain.search(" ")


def test_files_that_are_not_zim_files(tmp_path: Path) -> None:
    (tmp_path / "x.zim").write_text("not a ZIM file" * 20)
    for name in ("x.zim", "none.zim"):
        with pytest.raises(InputError, match=f"{name} as a ZIM file"):
            ZimFile(tmp_path / name)


def test_damaged_files(zim: Path, tmp_path: Path) -> None:
    data = bytearray(zim.read_bytes())
    (tmp_path / "cut.zim").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"cut\.zim as a ZIM file"):
        ZimFile(tmp_path / "cut.zim")
    data[-1] ^= 1  # of the checksum: libzim opens the file, and reads all pages
    (tmp_path / "changed.zim").write_bytes(data)
    with pytest.raises(InputError, match=r"changed\.zim is damaged: its content does not match its checksum"):
        index_zim(tmp_path / "changed.zim", tmp_path / "index")
    assert not (tmp_path / "index" / "pages" / "zim.json").exists()


def test_all_entries_are_counted(zim: Path, tmp_path: Path) -> None:
    job = Parsing(zim, tmp_path / "pages", entries_per_part=7)
    steps: list[tuple[str, int, int]] = []
    counts = parse_zim(job, 2, lambda *step: steps.append(step))
    assert counts.entries == ZimFile(zim).size == counts.pages + counts.blank + counts.others + len(counts.bad)
    assert (counts.pages, counts.blank) == (33, 1)
    assert counts.bad == [("Deep", "the page's HTML is nested too deeply to be converted to Markdown")]
    assert steps[-1] == ("parse", -(-counts.entries // 7), -(-counts.entries // 7))
    corpus = CorpusParts.open(tmp_path / "pages", "text")
    assert corpus.size == counts.passages


def test_passages_are_those_of_fanoutqa(zim: Path, indexed: Path) -> None:
    corpus = CorpusParts.open(indexed / "pages", "text")
    rows = corpus.rows(range(corpus.size), ["title", "text"])
    expected = chunk_text(ZimFile(zim).content({"title": "Grey heron"}), 1024)
    assert len(expected) > 2
    assert [row["text"] for row in rows if row["title"] == "Grey heron"] == expected
    assert list(corpus.texts(3, 9)) == [row["text"] for row in rows[3:9]]


def test_equal_to_an_index_in_memory(indexed: Path) -> None:
    found = IndexedZim(indexed)
    corpus = CorpusParts.open(indexed / "pages", "text")
    single = BM25Index(corpus.texts(0, corpus.size))
    for query in ("heron fish 3", "bird of the group 2", "wading"):
        assert found.index.search(query, 20) == single.search(query, 20)
    assert found.search("wading bird", 3)[0].title == "Mute swan"
    assert found.passages("vögel", 1) == [("Björk", "Sang für Vögel\n\n")]
    assert found.passages("platypus") == [] and found.search("platypus") == []
    assert found.name.startswith("the ZIM file birds (") and found.name.endswith("), bm25+")


def test_the_parts_do_not_change_the_index(zim: Path, indexed: Path, tmp_path: Path) -> None:
    parse_zim(Parsing(zim, tmp_path / "pages", entries_per_part=4), 2)
    one, other = (CorpusParts.open(folder / "pages", "text") for folder in (indexed, tmp_path))
    assert list(one.texts(0, one.size)) == list(other.texts(0, other.size))


def test_a_folder_that_was_moved(zim: Path, indexed: Path, tmp_path: Path) -> None:
    moved = indexed.rename(tmp_path / "elsewhere")
    try:
        assert IndexedZim(moved).passages("wading", 1)[0][0] == "Mute swan"
    finally:
        moved.rename(indexed)


def test_another_file_does_not_continue(zim: Path, indexed: Path, tmp_path: Path) -> None:
    other = write_zim(tmp_path / "other.zim", {"Swan": "<p>y</p>"})
    with pytest.raises(InputError, match="another ZIM file or of other options, which differ in uuid, entries"):
        index_zim(other, indexed)
    with pytest.raises(InputError, match="not an index of `qabench wiki index`"):
        IndexedZim(tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
from qabench.retrieval.wiki import zim_parts

left = int(sys.argv[3])
done = zim_parts.parse_part
def counted(job, part):
    global left
    done(job, part)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
zim_parts.parse_part = counted
zim_parts.parse_zim(zim_parts.Parsing(Path(sys.argv[1]), Path(sys.argv[2]), entries_per_part=5), 1)
"""


@pytest.mark.slow
def test_a_killed_build_continues(zim: Path, indexed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    for after in (2, 1):
        done = subprocess.run([sys.executable, "-c", KILLED, str(zim), str(folder), str(after)])
        assert done.returncode == -signal.SIGKILL
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert len(before) == 3
    parse_zim(Parsing(zim, folder, entries_per_part=5), 1)
    after_all = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert after_all.items() >= before.items()
    one, other = CorpusParts.open(indexed / "pages", "text"), CorpusParts.open(folder, "text")
    assert list(one.texts(0, one.size)) == list(other.texts(0, other.size))


def test_the_commands(zim: Path, tmp_path: Path) -> None:
    run, folder = CliRunner().invoke, tmp_path / "index"
    done = run(app, ["wiki", "index", str(zim), "--output", str(folder), "--workers", "1"])
    assert done.exit_code == 1 and "33 pages, " in done.output and "Deep: the page's HTML is nested" in done.output
    again = json.loads(run(app, ["wiki", "index", str(zim), "--output", str(folder), "--json"]).output)
    assert (again["pages"], again["bad"][0]["path"]) == (33, "Deep")
    found = json.loads(run(app, ["index", "search", str(folder), "wading", "-k", "1", "--json"]).output)
    assert "wading" in found[0]["text"]
    assert run(app, ["wiki", "search", "wading", "--wiki", str(folder)]).output.startswith("Mute swan")
    assert "Year" in run(app, ["wiki", "page", "Mute swan", "--wiki", str(zim)]).output
    okapi = run(app, ["index", "build", str(zim), "--output", str(tmp_path / "okapi"), "--method", "okapi"])
    assert okapi.exit_code == 1 and json.loads((tmp_path / "okapi/index.json").read_text())["source"] == "parts:pages"


def test_the_environment_chooses(zim: Path, indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_ZIM", str(zim))
    assert isinstance(wikipedia(), ZimFile) and wikipedia() is wikipedia()
    assert isinstance(wikipedia(str(indexed)), IndexedZim)


def test_an_unknown_encoding() -> None:
    assert decoded("é".encode("utf-16")) == "é"
    assert decoded(b"") == ""
