"""ZIM files: articles, redirects, searches and passages."""

from pathlib import Path

import pytest

pytest.importorskip("libzim", reason="needs the extra zim")

from typer.testing import CliRunner
from zim_files import write_zim

from qabench.cli import app
from qabench.errors import InputError
from qabench.retrieval.wiki.client import wikipedia
from qabench.retrieval.wiki.markdown import to_markdown
from qabench.retrieval.wiki.page import PageMissing
from qabench.retrieval.wiki.zim import ZimFile

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


@pytest.fixture(scope="module")
def zim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zim") / "birds.zim"
    return write_zim(path, PAGES, {"Heron": "Grey heron", "Hern": "Heron"}, full_text=True)


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


def test_a_damaged_file_is_one_line(zim: Path, tmp_path: Path) -> None:
    data = zim.read_bytes()
    messages = []
    for at in range(0, 80, 2):  # the header
        (tmp_path / "x.zim").write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        with pytest.raises(InputError, match=r"x\.zim") as error:
            ZimFile(tmp_path / "x.zim")
        messages.append(str(error.value))
    assert not [message for message in messages if "\n" in message]


def test_files_that_are_not_zim_files(tmp_path: Path) -> None:
    (tmp_path / "x.zim").write_text("not a ZIM file" * 20)
    for name in ("x.zim", "none.zim"):
        with pytest.raises(InputError, match=f"{name} as a ZIM file"):
            ZimFile(tmp_path / name)


def test_a_file_is_checked_once(zim: Path, tmp_path: Path) -> None:
    copy = tmp_path / "birds.zim"
    copy.write_bytes(zim.read_bytes())
    ZimFile(copy)
    records = list((tmp_path / "cache" / "checked-zim-files").iterdir())
    ZimFile(copy)
    assert list((tmp_path / "cache" / "checked-zim-files").iterdir()) == records and len(records) == 1
    data = bytearray(copy.read_bytes())
    data[-1] ^= 1  # of the checksum: libzim opens the file, and reads all pages
    copy.write_bytes(data)
    with pytest.raises(InputError, match=r"birds\.zim is damaged: its content does not match its checksum"):
        ZimFile(copy)


def test_lone_surrogates(zim: Path) -> None:
    file = ZimFile(zim)
    assert isinstance(file.search("wading \ud800"), list)
    with pytest.raises(PageMissing):
        file.content({"title": "Mute \ud800 swan", "url": "\ud800"})


def test_the_commands(zim: Path) -> None:
    run = CliRunner().invoke
    assert run(app, ["wiki", "search", "wading", "--wiki", str(zim)]).output == "Mute swan\n"
    assert "Year" in run(app, ["wiki", "page", "Mute swan", "--wiki", str(zim)]).output


def test_the_environment_chooses(zim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_ZIM", str(zim))
    assert isinstance(wikipedia(), ZimFile) and wikipedia() is wikipedia()
    with pytest.raises(InputError, match="as a ZIM file"):
        wikipedia(str(zim.parent))
