"""Importing tarballs: only pages are written, and only to the cache's folder."""

import gzip
import io
import random
import tarfile
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tarballs import tarball

from qabench.errors import InputError, QabenchError
from qabench.retrieval.wiki import tarball as wiki_import
from qabench.retrieval.wiki.cache import WikiCache
from qabench.retrieval.wiki.tarball import Imported, import_cache


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
    assert (done.written, len(done.refused)) == (0, 2)
    assert not (tmp_path / "cache").exists()


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


PAGES = {f"{n}-dated.md": random.Random(n).randbytes(900).hex() for n in range(1, 9)}


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
