"""Normalised texts kept between runs: scoring the same generations again costs a look-up, not a parse."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from qabench.database import open_database
from qabench.paths import cache_dir

MAX_BYTES = 256 * 1024 * 1024
DISABLING_VARIABLE = "QABENCH_TEXT_CACHE"
KEYS_PER_QUERY = 500
SECONDS_TO_WAIT_FOR_OTHERS = 30.0
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, form TEXT NOT NULL);
"""


class NormalizedTextCache:
    """A bounded SQLite file of normalised texts, safe for several processes at once.

    An entry's key is a digest of the normaliser's key (its steps, the versions of ftfy and spaCy, the digest of the
    model) and of the text, so nothing is served for another normaliser. When the file reaches ``max_bytes``, the
    oldest quarter of it goes. A cache that cannot be used (damaged, read-only, locked) costs a warning and time,
    never a score.
    """

    def __init__(self, path: Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.path = path or cache_dir() / "normalized.sqlite"
        self.max_bytes = max_bytes
        self.usable = True

    @classmethod
    def default(cls) -> NormalizedTextCache | None:
        """The user's cache, or None where the environment says QABENCH_TEXT_CACHE=0."""
        return None if os.environ.get(DISABLING_VARIABLE) == "0" else cls()

    def get(self, key: str, texts: Iterable[str]) -> dict[str, str]:
        """The normal forms that are known, by text."""
        by_digest = {_digest(key, text): text for text in texts}
        found: dict[str, str] = {}
        with self._connection() as connection:
            for digests in _chunks(by_digest, KEYS_PER_QUERY):
                marks = ",".join("?" * len(digests))
                rows = connection.execute(f"SELECT digest, form FROM texts WHERE digest IN ({marks})", digests)
                found.update((by_digest[digest], form) for digest, form in rows)
        return found

    def put(self, key: str, forms: Mapping[str, str]) -> None:
        """Remembers normal forms by text."""
        with self._connection() as connection, connection:
            rows = ((_digest(key, text), form) for text, form in forms.items())
            connection.executemany("INSERT OR IGNORE INTO texts (digest, form) VALUES (?, ?)", rows)
            self._make_room(connection)

    def _make_room(self, connection: sqlite3.Connection) -> None:
        pragmas = ("page_count", "freelist_count", "page_size")
        pages, free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
        if (pages - free) * size > self.max_bytes:
            oldest = "SELECT id FROM texts ORDER BY id LIMIT (SELECT count(*) / 4 + 1 FROM texts)"
            connection.execute(f"DELETE FROM texts WHERE id IN ({oldest})")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection; where the file cannot be used, one to an empty database in memory and, once, a warning."""
        connection = None
        try:
            connection = open_database(self.path if self.usable else None, SCHEMA, SECONDS_TO_WAIT_FOR_OTHERS)
            yield connection
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            if connection is None:
                connection = open_database(None, SCHEMA, SECONDS_TO_WAIT_FOR_OTHERS)
                yield connection
        finally:
            if connection:
                connection.close()

    def _give_up(self, error: Exception) -> None:
        self.usable = False
        warnings.warn(
            f"the cache of normalised texts {self.path} cannot be used ({error}); going on without it. "
            f"Delete the file, or set {DISABLING_VARIABLE}=0 or QABENCH_CACHE to a folder you can write to.",
            stacklevel=2,
        )


def _digest(key: str, text: str) -> bytes:
    # A lone surrogate is a legal character of a Python string, and generations hold some.
    return hashlib.sha256(f"{key}\0{text}".encode("utf-8", "surrogatepass")).digest()[:20]


def _chunks(items: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
