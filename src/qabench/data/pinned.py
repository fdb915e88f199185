"""Pinned upstream files: the table of a benchmark, and the comparison of local files with their digests."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from qabench.errors import DataError, DigestMismatch, InputError

_REPO = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
_HEX40 = re.compile(r"[0-9a-f]{40}")
_HEX64 = re.compile(r"[0-9a-f]{64}")
_FILE_KEYS = frozenset({"path", "commit", "git_blob_sha1", "sha256", "size", "lfs"})


@dataclass(frozen=True)
class SourceFile:
    """One upstream file, pinned by commit and content.

    ``path`` is relative to the root of the repository, with forward slashes. At least one of ``git_blob_sha1`` and
    ``sha256`` (lowercase hex) is set. ``size`` is in bytes, None if unknown. For a Git LFS file (``lfs``), digest and
    size are those of the content, not of the pointer.

    Raises:
        ValueError: a field is invalid.
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
        _require(_REPO, "repo", self.repo, "OWNER/REPO")
        _require(_HEX40, "commit", self.commit, "40 lower-case hex digits")
        _require_inside(self.path)
        if type(self.lfs) is not bool or not isinstance(self.license, str):
            raise ValueError(f"{self.path}: lfs is {self.lfs!r} (a boolean), license is {self.license!r} (a string)")
        if self.git_blob_sha1 is None and self.sha256 is None:
            raise ValueError(f"{self.path}: no digest; give git_blob_sha1, sha256 or both")
        if self.git_blob_sha1 is not None:
            _require(_HEX40, "git_blob_sha1", self.git_blob_sha1, "40 lower-case hex digits")
        if self.sha256 is not None:
            _require(_HEX64, "sha256", self.sha256, "64 lower-case hex digits")
        if self.size is not None and (type(self.size) is not int or self.size < 0):
            raise ValueError(f"{self.path}: size is {self.size!r}; it must be a number of bytes, or absent if unknown")

    @property
    def url(self) -> str:
        """Return the URL of the published content: GitHub's raw files, or its media server for Git LFS."""
        base = "https://media.githubusercontent.com/media" if self.lfs else "https://raw.githubusercontent.com"
        return f"{base}/{self.repo}/{self.commit}/{quote(self.path)}"

    @property
    def mirror_path(self) -> PurePosixPath:
        """Return the path of the file in a mirror folder or on a mirror server: OWNER/REPO/PATH."""
        return PurePosixPath(self.repo, self.path)

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.path}"


@dataclass(frozen=True)
class SourceTable:
    """All pinned files of a benchmark, in the order of the table. Raises ValueError if a path is listed twice."""

    benchmark: str
    files: tuple[SourceFile, ...]

    def __post_init__(self) -> None:
        if len(self._by_path) != len(self.files):
            paths = [file.path for file in self.files]
            raise ValueError(f"paths listed twice: {sorted({path for path in paths if paths.count(path) > 1})}")

    @cached_property
    def _by_path(self) -> dict[str, SourceFile]:
        return {file.path: file for file in self.files}

    def __iter__(self) -> Iterator[SourceFile]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __contains__(self, path: object) -> bool:
        return path in self._by_path

    def __getitem__(self, path: str) -> SourceFile:
        """Return the file at ``path`` (relative to the repository). Raises InputError, which lists similar paths."""
        try:
            return self._by_path[path]
        except KeyError:
            name = PurePosixPath(path).name
            near = [other for other in self._by_path if PurePosixPath(other).name == name]
            near += difflib.get_close_matches(path, self._by_path, n=5, cutoff=0.5)
            hint = f"Similar paths: {', '.join(dict.fromkeys(near))}" if near else "It has no similar paths"
            raise InputError(f"{self.benchmark} has no source file {path!r}. {hint}.") from None


def load_table(path_to_json: str | Path, benchmark: str) -> SourceTable:
    """Read a ``sources.json``: ``{"repo", "commit", "license", "files": [{"path", digests, "size", "lfs"}, ...]}``.

    A file can have its own "commit", which replaces that of the table.

    Raises:
        DataError: a field is missing, unknown or malformed, a file has no digest, or a path is listed twice or leads
            out of the repository. The message names the file and the entry.
    """
    where = Path(path_to_json)
    try:
        document = json.loads(where.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{where}: the source table cannot be read: {error}") from error
    if not isinstance(document, dict) or document.keys() != {"repo", "commit", "license", "files"}:
        raise DataError(f"{where}: a source table is an object with exactly repo, commit, license and files")
    if not isinstance(document["files"], list):
        raise DataError(f"{where}: files is {type(document['files']).__name__}; it must be a list")
    common = {"benchmark": benchmark} | {key: document[key] for key in ("repo", "commit", "license")}
    entries = enumerate(document["files"])
    files = tuple(_read_entry(entry, common, f"{where}: files[{index}]") for index, entry in entries)
    try:
        return SourceTable(benchmark, files)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error


def _read_entry(entry: Any, common: dict[str, Any], where: str) -> SourceFile:
    if not isinstance(entry, dict) or "path" not in entry or not entry.keys() <= _FILE_KEYS:
        raise DataError(f"{where} is {entry!r}; it must be an object with path and optionally {sorted(_FILE_KEYS)}")
    try:
        return SourceFile(**(common | entry))
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error


def _require(pattern: re.Pattern[str], field: str, value: object, allowed: str) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{field} is {value!r}; it must be {allowed}")


def _require_inside(path: object) -> None:
    # The path becomes part of a local path; on Windows, backslashes are separators and colons mark drives.
    if (
        not isinstance(path, str)
        or any(part in ("", ".", "..") for part in path.split("/"))
        or any(character in "\\:" or not character.isprintable() for character in path)
    ):
        raise ValueError(f"path is {path!r}; it must be relative to the repository's root, with '/' and without '..'")


# A second change within one tick of the file system's clock does not change the timestamps, so the digests of a file
# that has just changed are not cached.
_SETTLED_NS = 100_000_000
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


_memo: dict[tuple[str | int, ...], str] = {}


def content_digest(path: Path, algorithm: Literal["sha256", "git"]) -> str:
    """Return a digest of a file's content as lowercase hex.

    Git's blob id is the SHA-1 of "blob SIZE", a NUL byte and the content. The result is cached in this process as long
    as the file's size, inode and timestamps do not change.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        stamps = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)
        key = (os.path.abspath(path), *stamps, algorithm)
        if key in _memo:
            return _memo[key]
        settled = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_NS
        head = b"blob %d\0" % stat.st_size
        new = hashlib.sha256 if algorithm == "sha256" else lambda: hashlib.sha1(head, usedforsecurity=False)
        digest = hashlib.file_digest(file, new).hexdigest()
    if settled:
        _memo[key] = digest
    return digest


def find_mismatch(path: Path, source: SourceFile) -> str | None:
    """Return the differences between the file at ``path`` and the pinned content, or None if all known digests agree.

    If the size is wrong, the content is not read.

    Raises:
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        return f"size expected {source.size}, got {size} bytes{_pointer_hint(path)}"
    checks: tuple[tuple[str, str | None, Literal["sha256", "git"]], ...] = (
        ("SHA-256", source.sha256, "sha256"),
        ("git blob SHA-1", source.git_blob_sha1, "git"),
    )
    digests = [(name, pinned, content_digest(path, algorithm)) for name, pinned, algorithm in checks if pinned]
    wrong = [f"{name} expected {pinned}, got {actual}" for name, pinned, actual in digests if pinned != actual]
    return "; ".join(wrong) + _pointer_hint(path) if wrong else None


def verify(path: Path, source: SourceFile, *, fix: str | None = None) -> None:
    """Check that the file at ``path`` has the pinned content of ``source``.

    Args:
        path: the file.
        source: the pinned file.
        fix: how to fix a mismatch, for the error message; by default, to replace the file by the published one.

    Raises:
        DigestMismatch: the content is different.
        OSError: the file cannot be read.
    """
    wrong = find_mismatch(path, source)
    if wrong is not None:
        raise mismatch_error(path, source, wrong, fix or f"Replace it by {source.url}")


def mismatch_error(path: Path, source: SourceFile, wrong: str, fix: str) -> DigestMismatch:
    """Return the error for a file with the result ``wrong`` of ``find_mismatch``; ``fix`` says how to fix it."""
    return DigestMismatch(f"{source}: {path} is not the pinned content: {wrong}. {fix}.")


def _pointer_hint(path: Path) -> str:
    with path.open("rb") as file:
        is_pointer = file.read(len(_LFS_POINTER)) == _LFS_POINTER
    return " (it is a Git LFS pointer, not the content: run `git lfs pull` in a clone)" if is_pointer else ""
