"""Entries of a source table for given content, and their files in a mirror."""

import hashlib
from pathlib import Path
from typing import Any

from qabench.data.pinned import SourceFile

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONTENT = b"question\nanswer\n"


def blob_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def make_source(content: bytes = CONTENT, path: str = "data/dev set.json", **fields: Any) -> SourceFile:
    given = {"git_blob_sha1": blob_sha1(content), "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    return SourceFile("fanoutqa", "owner/repo", COMMIT, path, "MIT", **(given | fields))


def put(folder: Path, source: SourceFile, content: bytes = CONTENT) -> Path:
    path = folder / source.mirror_path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
