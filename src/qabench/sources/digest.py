"""Content digests of local files, and their comparison with the pinned digests."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from qabench.errors import DigestMismatch
from qabench.sources.table import SourceFile

_CHUNK = 1 << 20
# A second change within one tick of the file system's clock does not change the timestamps, so the digests of a file
# that has just changed are not cached.
_SETTLED_NS = 100_000_000
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class Digests:
    """Size in bytes and the requested digests (lowercase hex; None if not requested)."""

    size: int
    git_blob_sha1: str | None = None
    sha256: str | None = None


_memo: dict[tuple[str | int | bool, ...], Digests] = {}


def compute_digests(path: Path, *, git_blob_sha1: bool = True, sha256: bool = True) -> Digests:
    """Return the digests of the file at ``path``, in one pass over its content.

    Git's blob id is the SHA-1 of "blob SIZE", a NUL byte and the content. The result is cached in this process as long
    as the file's size, inode and timestamps do not change.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        stamps = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)
        key = (os.path.abspath(path), *stamps, git_blob_sha1, sha256)
        if key in _memo:
            return _memo[key]
        settled = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_NS
        blob = hashlib.sha1(b"blob %d\0" % stat.st_size, usedforsecurity=False) if git_blob_sha1 else None
        content = hashlib.sha256() if sha256 else None
        size = 0
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            for digest in (blob, content):
                if digest is not None:
                    digest.update(chunk)
    result = Digests(size, blob.hexdigest() if blob else None, content.hexdigest() if content else None)
    if settled:
        _memo[key] = result
    return result


def find_mismatch(path: Path, source: SourceFile) -> str | None:
    """Return the differences between the file at ``path`` and the pinned content, or None if all known digests agree.

    If the size is wrong, the content is not read.

    Raises:
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        return f"size expected {source.size}, got {size} bytes{_pointer_hint(path)}"
    got = compute_digests(path, git_blob_sha1=source.git_blob_sha1 is not None, sha256=source.sha256 is not None)
    checks = (
        ("SHA-256", source.sha256, got.sha256),
        ("git blob SHA-1", source.git_blob_sha1, got.git_blob_sha1),
    )
    wrong = [f"{name} expected {pinned}, got {actual}" for name, pinned, actual in checks if pinned != actual]
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
