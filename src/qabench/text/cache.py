"""Persistent cache of normalized strings: scoring the same generations again costs a lookup instead of a parse."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from qabench.io.files import cache_dir
from qabench.io.sqlite import DATABASE_ERRORS, EntryCheck, entry_checksum, open_database

MAX_BYTES = 256 * 1024 * 1024
DISABLING_VARIABLE = "QABENCH_TEXT_CACHE"
KEYS_PER_QUERY = 500
SECONDS_TO_WAIT_FOR_OTHERS = 30.0
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS forms (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, form BLOB NOT NULL, checksum BLOB NOT NULL
);
"""


class NormalizedTextCache:
    """A bounded SQLite file of normalized strings, safe for several processes at once.

    The key of an entry is a digest of the normalizer's key (its steps, the versions of ftfy and spaCy, the digest of
    the model) and of the text, so an entry is never used for another normalizer. When the file reaches ``max_bytes``,
    the oldest quarter of the entries is deleted.

    Each entry has a checksum over key and value. A damaged entry counts as missing, and the first one causes a
    warning. If the file cannot be used (damaged, read-only, locked), there is a warning, and scoring continues without
    it. Neither changes a score.

    Attributes:
        damaged: the number of damaged entries that were found.
    """

    def __init__(self, path: Path | None = None, max_bytes: int = MAX_BYTES, hold: bool = False) -> None:
        self.path = path or cache_dir() / "normalized.sqlite"
        self.max_bytes = max_bytes
        self.hold = hold  # whether each thread keeps its connection open, for many small calls
        self._local = threading.local()
        self.usable = True
        self._check = EntryCheck("cache of normalized strings", self.path, "and the strings are normalized again")

    @classmethod
    def default(cls, hold: bool = False) -> NormalizedTextCache | None:
        """Return the user's cache, or None if the environment variable QABENCH_TEXT_CACHE is 0."""
        return None if os.environ.get(DISABLING_VARIABLE) == "0" else cls(hold=hold)

    @property
    def damaged(self) -> int:
        return self._check.damaged

    def get(self, key: str, texts: Iterable[str]) -> dict[str, str]:
        """Return the normal forms in the cache, by text."""
        by_digest = {_digest(key, text): text for text in texts}
        forms: dict[str, str] = {}
        with self._connection() as connection:
            for digests in _chunks(by_digest, KEYS_PER_QUERY):
                marks = ",".join("?" * len(digests))
                query = f"SELECT digest, form, checksum FROM forms WHERE digest IN ({marks})"
                for digest, form, checksum in connection.execute(query, digests):
                    if self._check.holds(digest, form, checksum) and digest in by_digest:
                        forms[by_digest[digest]] = form.decode("utf-8", "surrogatepass")
        return forms

    def put(self, key: str, forms: Mapping[str, str]) -> None:
        """Store normal forms by text."""
        with self._connection() as connection, connection:
            rows = (_row(_digest(key, text), form) for text, form in forms.items())
            # Only missing entries are stored, so an existing entry is a damaged one.
            connection.executemany("INSERT OR REPLACE INTO forms (digest, form, checksum) VALUES (?, ?, ?)", rows)
            self._make_room(connection)

    def _make_room(self, connection: sqlite3.Connection) -> None:
        pragmas = ("page_count", "freelist_count", "page_size")
        pages, free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
        if (pages - free) * size > self.max_bytes:
            oldest = "SELECT id FROM forms ORDER BY id LIMIT (SELECT count(*) / 4 + 1 FROM forms)"
            connection.execute(f"DELETE FROM forms WHERE id IN ({oldest})")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection to the file. If the file cannot be used: one warning and an empty database in memory."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        try:
            connection = connection or self._opened()
            yield connection
        except DATABASE_ERRORS as error:
            self._local.connection = None
            self._give_up(error)
            if connection is None:
                connection = open_database(None, SCHEMA, SECONDS_TO_WAIT_FOR_OTHERS)
                yield connection
        finally:
            if connection and connection is not getattr(self._local, "connection", None):
                connection.close()

    def _opened(self) -> sqlite3.Connection:
        connection = open_database(self.path if self.usable else None, SCHEMA, SECONDS_TO_WAIT_FOR_OTHERS)
        if self.hold:
            self._local.connection = connection
        return connection

    def _give_up(self, error: Exception) -> None:
        self.usable = False
        warnings.warn(
            f"the cache of normalized strings {self.path} cannot be used ({error}); continuing without it. "
            f"Delete the file, or set {DISABLING_VARIABLE}=0 or QABENCH_CACHE to a folder you can write to.",
            stacklevel=2,
        )


def _row(digest: bytes, form: str) -> tuple[bytes, bytes, bytes]:
    value = form.encode("utf-8", "surrogatepass")
    return digest, value, entry_checksum(digest, value)


def _digest(key: str, text: str) -> bytes:
    # Generations can contain lone surrogates, which plain UTF-8 cannot encode.
    return hashlib.sha256(f"{key}\0{text}".encode("utf-8", "surrogatepass")).digest()[:20]


def _chunks(items: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
