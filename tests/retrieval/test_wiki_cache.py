"""The cache of pages: folders, damage, titles, full disks."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from qabench.errors import QabenchError
from qabench.retrieval.wiki.cache import WikiCache, official_folder

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


def test_the_variable_and_the_argument_name_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_WIKICACHE", "~/pages")
    WikiCache().write(1, TEXT)
    assert (tmp_path / "home/pages/1-dated.md").is_file()
    assert WikiCache(tmp_path / "else").folder == tmp_path / "else"


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


def test_a_full_disk_keeps_existing_files(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = WikiCache()
    cache.write(9, TEXT)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(QabenchError, match=r"cannot write .*9-dated\.md: No space left"):
        cache.write(9, "new")
    assert cache.read(9) == TEXT
    assert [path.name for path in cache.folder.iterdir()] == ["9-dated.md"]


def test_files_of_killed_processes_are_deleted() -> None:
    cache = WikiCache()
    cache.write(1, TEXT)
    cache.remember_title("One", 1)
    old, young = cache.folder / ".2-dated.md.abc", cache.folder / ".3-dated.md.def"
    older = cache.folder / "titles" / ".0a.json.ghi"
    for path in (old, young, older):
        put(path, "half a pa")
    for path in (old, older):
        os.utime(path, (1, 1))
    assert cache.sweep() == 2
    assert not old.exists() and not older.exists() and young.exists()
    assert cache.read(1) == TEXT and cache.pageid_of("One") == 1
