"""Importing tarballs: only pages are written, and only to the cache's folder."""

from __future__ import annotations

import contextlib
import os
import tarfile
import tempfile
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
    assert import_cache(path, cache, lambda *counts: told.append(counts)) == Imported(written=3)
    assert files(cache.folder) == {"1-dated.md": "one", "2-dated.md": "zwei – ü", "38930-dated.md": "three"}
    assert told[-1][0] <= told[-1][1] == path.stat().st_size
    assert import_cache(path, cache) == Imported(present=3)


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


def test_pages_of_a_truncated_tarball_are_kept(tmp_path: Path) -> None:
    pages = [(f"{n}-dated.md", os.urandom(8_000).hex()) for n in range(1, 40)]
    whole = tarball(tmp_path / "whole.tar", pages)
    data = whole.read_bytes()
    cut = tmp_path / "cut.tar"
    for share in (0.5, 0.9, 0.99):
        cut.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(QabenchError, match=r"cut\.tar is damaged or ends too early .* pages, which are kept"):
            import_cache(cut)
    there = len(files(WikiCache().folder)) if WikiCache().folder.exists() else 0
    assert import_cache(whole) == Imported(written=39 - there, present=there)
    assert files(WikiCache().folder) == dict(pages)


@settings(max_examples=30)
@given(cut=st.integers(1, 10_239), flip=st.integers(0, 10_239))
def test_a_plain_tarball_cut_or_changed_anywhere(cut: int, flip: int) -> None:
    """Truncated: only whole pages. Changed: only pages in the cache's folder."""
    pages = {f"{n}-dated.md": f"page {n} " * 200 for n in range(1, 4)}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        data = bytearray(tarball(here / "whole.tar", list(pages.items()), "w").read_bytes())
        (here / "cut.tar").write_bytes(data[:cut])
        with contextlib.suppress(QabenchError):
            import_cache(here / "cut.tar", WikiCache(here / "cut"))
        assert files(here / "cut").items() <= pages.items()
        data[flip] ^= 0xFF
        (here / "flipped.tar").write_bytes(data)
        with contextlib.suppress(QabenchError):
            import_cache(here / "flipped.tar", WikiCache(here / "flipped"))
        assert all(wiki_import.PAGE.fullmatch(name) for name in files(here / "flipped"))
        assert {path.name for path in here.iterdir()} <= {"whole.tar", "cut.tar", "flipped.tar", "cut", "flipped"}
