"""Pinned upstream files: the table of a benchmark, and the comparison of local files with their digests."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import quote

from qabench.errors import DigestMismatch, InputError


@dataclass(frozen=True)
class SourceFile:
    """One upstream file, pinned by commit and content.

    ``path`` is relative to the root of the repository. At least one of ``git_blob_sha1`` and
    ``sha256`` (lowercase hex) is set. ``size`` is in bytes, None if unknown. For a Git LFS file
    (``lfs``), digest and size belong to the content, not to the pointer.
    """

    benchmark: str
    repo: str
    commit: str
    path: str
    license: str
    git_blob_sha1: str | None = None
    sha256: str | None = None
    size: int | None = None
    lfs: bool = False

    def __post_init__(self) -> None:
        if not self.git_blob_sha1 and not self.sha256:
            raise ValueError(f"{self.path}: no digest; give git_blob_sha1, sha256 or both")

    @property
    def url(self) -> str:
        """Return the URL of the published content: GitHub's raw files, or its media server for Git LFS."""
        base = (
            "https://media.githubusercontent.com/media"
            if self.lfs
            else "https://raw.githubusercontent.com"
        )
        return f"{base}/{self.repo}/{self.commit}/{quote(self.path)}"

    @property
    def mirror_path(self) -> PurePosixPath:
        """Return the path of the file in a mirror folder or on a mirror server: OWNER/REPO/PATH."""
        return PurePosixPath(self.repo, self.path)

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.path}"


class SourceTable(dict[str, SourceFile]):
    """All pinned files of a benchmark by path, in the order of the table."""

    def __init__(self, benchmark: str, files: Iterable[SourceFile]) -> None:
        super().__init__((file.path, file) for file in files)
        self.benchmark = benchmark

    def __missing__(self, path: str) -> SourceFile:
        """Raise InputError, which lists similar paths."""
        near = ", ".join(difflib.get_close_matches(path, self, n=5)) or "none"
        raise InputError(f"{self.benchmark} has no source file {path!r}. Similar paths: {near}.")


def load_table(path: Path, benchmark: str) -> SourceTable:
    """Read a ``sources.json``: ``{"repo", "commit", "license", "files": [{"path", digests, "size", "lfs"}, ...]}``.

    A file can have its own "commit", which replaces the table's.
    """
    table = json.loads(path.read_text(encoding="utf-8"))
    entries = table.pop("files")
    return SourceTable(benchmark, (SourceFile(benchmark, **(table | entry)) for entry in entries))


# A second change within one tick of the file system's clock does not change the timestamps, so the
# digests of a file that has just changed are not cached.
_SETTLED_NS = 100_000_000
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_memo: dict[tuple[str | int, ...], str] = {}


def content_digest(path: Path, algorithm: Literal["sha256", "git"]) -> str:
    """Return a digest of a file's content as lowercase hex.

    Git's is its blob id.

    It is cached in this process as long as the file's size, inode and timestamps do not change.
    """
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        stamps = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)
        key = (os.path.abspath(path), *stamps, algorithm)
        if key in _memo:
            return _memo[key]
        settled = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_NS
        head = b"blob %d\0" % stat.st_size
        new = (
            hashlib.sha256
            if algorithm == "sha256"
            else lambda: hashlib.sha1(head, usedforsecurity=False)
        )
        digest = hashlib.file_digest(file, new).hexdigest()
    if settled:
        _memo[key] = digest
    return digest


def find_mismatch(path: Path, source: SourceFile) -> str | None:
    """Return the differences between a file and the pinned content, or None if size and all known digests agree."""
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        return f"size expected {source.size}, got {size} bytes{_pointer_hint(path)}"
    checks: tuple[tuple[str, str | None, Literal["sha256", "git"]], ...] = (
        ("SHA-256", source.sha256, "sha256"),
        ("git blob SHA-1", source.git_blob_sha1, "git"),
    )
    digests = [
        (name, pinned, content_digest(path, algorithm))
        for name, pinned, algorithm in checks
        if pinned
    ]
    wrong = [
        f"{name} expected {pinned}, got {actual}"
        for name, pinned, actual in digests
        if pinned != actual
    ]
    return "; ".join(wrong) + _pointer_hint(path) if wrong else None


def mismatch_error(path: Path, source: SourceFile, wrong: str, fix: str) -> DigestMismatch:
    """Return the error for a file with the result ``wrong`` of ``find_mismatch``.

    ``fix`` says how to fix it.
    """
    return DigestMismatch(f"{source}: {path} is not the pinned content: {wrong}. {fix}.")


def _pointer_hint(path: Path) -> str:
    with path.open("rb") as file:
        is_pointer = file.read(len(_LFS_POINTER)) == _LFS_POINTER
    return (
        " (it is a Git LFS pointer, not the content: run `git lfs pull` in a clone)"
        if is_pointer
        else ""
    )
