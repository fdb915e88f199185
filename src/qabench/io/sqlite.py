"""SQLite caches that several processes open at the same time, and checksums of their entries."""

from __future__ import annotations

import hashlib
import sqlite3
import time
import warnings
from pathlib import Path
from typing import Any

SECONDS_BETWEEN_TRIES = 0.02
CHECKSUM_BYTES = 8
# All exceptions that damaged files were seen to cause (a damaged length causes a MemoryError).
DATABASE_ERRORS = (sqlite3.Error, OSError, ValueError, TypeError, OverflowError, MemoryError)


def open_database(path: Path | None, schema: str, timeout: float, **options: Any) -> sqlite3.Connection:
    """Open a database file (None: in memory) with a schema that is run each time. Text columns are returned as bytes.

    Raises sqlite3.Error or OSError: the file cannot be used, or other processes lock it for ``timeout`` seconds.
    """
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
    connection: sqlite3.Connection = sqlite3.connect(path or ":memory:", timeout=timeout, **options)
    connection.text_factory = bytes  # decoding a damaged text would raise before its checksum is compared
    give_up = time.monotonic() + timeout
    while True:
        try:
            connection.executescript(schema)
            return connection
        except sqlite3.OperationalError as error:
            # SQLite's own timeout does not apply to the switch to a write-ahead log, which fails at once.
            if "locked" not in str(error) or time.monotonic() > give_up:
                connection.close()
                raise
            time.sleep(SECONDS_BETWEEN_TRIES)
        except BaseException:
            connection.close()
            raise


def entry_checksum(key: bytes, value: bytes) -> bytes:
    """Return the checksum of a cache entry. It includes the key, so that a value under a wrong key is detected too."""
    return hashlib.blake2b(key + value, digest_size=CHECKSUM_BYTES).digest()


class EntryCheck:
    """Compares entries of one cache file with their checksums, counts the damaged ones and warns about the first."""

    def __init__(self, what: str, path: Path, consequence: str) -> None:
        self.damaged = 0
        self._message = f"the {what} {path} has damaged entries; they are ignored, {consequence}. Check the disk"

    def holds(self, key: object, value: object, checksum: object) -> bool:
        """Return whether an entry matches its checksum. The columns of a damaged row can have any type."""
        if isinstance(key, bytes) and isinstance(value, bytes) and checksum == entry_checksum(key, value):
            return True
        self.damaged += 1
        if self.damaged == 1:
            warnings.warn(self._message, stacklevel=2)
        return False
