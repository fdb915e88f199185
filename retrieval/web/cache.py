"""Search results, pages and rankings on disk: a second run fetches nothing twice and sees the same evidence."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
import zlib
from pathlib import Path
from typing import Any

from qabench.io.files import cache_dir, replacing

FOLDER = "web"


class WebCache:
    """A folder with one compressed JSON file per entry. A damaged file counts as missing."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_dir() / FOLDER

    def get(self, kind: str, key: str, max_age: float | None = None) -> dict[str, Any] | None:
        """Return the entry of a key, or None if there is none, or if it is older than ``max_age`` seconds."""
        try:
            entry = json.loads(gzip.decompress(self._path(kind, key).read_bytes()))
            if entry["key"] != key or (max_age is not None and time.time() - entry["time"] > max_age):
                return None
            value: dict[str, Any] = entry["value"]
        except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error):
            return None
        return value

    def put(self, kind: str, key: str, value: dict[str, Any]) -> None:
        """Store an entry. Raises QabenchError if it cannot be written."""
        entry = json.dumps({"key": key, "time": time.time(), "value": value}).encode()
        with replacing(self._path(kind, key)) as file:
            file.write(gzip.compress(entry, compresslevel=6, mtime=0))

    def _path(self, kind: str, key: str) -> Path:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / kind / name[:2] / f"{name[:32]}.json.gz"
