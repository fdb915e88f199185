"""SQLite caches that several processes open at the same time, and checksums of their entries."""

from __future__ import annotations

import atexit
import hashlib
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
# Another process may lock the file while it writes a large batch.
SECONDS_TO_WAIT_FOR_OTHERS = 30.0
SECONDS_BETWEEN_TRIES = 0.02
# This length is enough to notice damage. It does not protect against forgery.
CHECKSUM_BYTES = 8
# All exceptions that damaged files were seen to cause (a damaged length causes a MemoryError).
DATABASE_ERRORS = (sqlite3.Error, OSError, ValueError, TypeError, OverflowError, MemoryError)


def open_database(path: Path | None, schema: str) -> sqlite3.Connection:
    """Open a database file (None: in memory), and run its schema.

    Text columns are returned as bytes. Raises sqlite3.Error or OSError if the file cannot be used,
    or other processes lock it for too long.
    """
    timeout = SECONDS_TO_WAIT_FOR_OTHERS
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        path or ":memory:", timeout=timeout, isolation_level=None, check_same_thread=False
    )
    # Decoding a damaged text would raise an error before its checksum is compared.
    connection.text_factory = bytes
    give_up = time.monotonic() + timeout
    while True:
        try:
            connection.executescript(schema)
            return connection
        except sqlite3.OperationalError as error:
            # SQLite's own timeout does not apply to the switch to a write-ahead log, which fails at
            # once.
            if "locked" not in str(error) or time.monotonic() > give_up:
                connection.close()
                raise
            time.sleep(SECONDS_BETWEEN_TRIES)
        except BaseException:
            connection.close()
            raise


def entry_checksum(key: bytes, value: bytes) -> bytes:
    """Return the checksum of a cache entry. It covers the key, so that a wrong key is detected."""
    return hashlib.blake2b(key + value, digest_size=CHECKSUM_BYTES).digest()


class EntryFile:
    """A SQLite cache that several processes and threads share, with a checksum of each entry.

    A damaged entry counts as missing, and the first one causes a warning. If the file cannot be
    used (damaged, read-only, full, locked), there is a warning, and from then on entries are kept
    in memory.

    Attributes:
        damaged: the number of damaged entries that were read.
        usable: whether entries are kept in the file. Otherwise, they are in memory.
    """

    def __init__(
        self,
        path: Path,
        schema: str,
        *,
        name: str,
        if_damaged: str,
        if_unusable: str,
        hold: bool = True,
    ) -> None:
        self.path = path
        self._schema = schema
        self._name = f"the {name} {path}"
        self._if_damaged = if_damaged
        self._if_unusable = if_unusable
        # Whether the file stays open between actions, which saves time if there are many small
        # ones.
        self._hold = hold
        self.damaged = 0
        self.usable = True
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        _files_in_use.add(self)

    def attempt(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of an action on the file or, if that fails, on a database in memory."""
        with self._lock:
            try:
                return action(self._opened())
            except DATABASE_ERRORS as error:
                if not self.usable:
                    raise
                self.close()
                self.usable = False
                warnings.warn(
                    f"{self._name} cannot be used ({error}){self._if_unusable}", stacklevel=3
                )
                return action(self._opened())
            finally:
                if not self._hold:
                    self.close()

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        # Another thread may be storing an entry.
        with self._lock:
            # A database in memory would lose its entries.
            if self._connection is not None and self.usable:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def is_whole(self, key: object, value: object, checksum: object) -> bool:
        """Tell whether an entry matches its checksum."""
        # The columns of a damaged row can have any type.
        if (
            isinstance(key, bytes)
            and isinstance(value, bytes)
            and checksum == entry_checksum(key, value)
        ):
            return True
        self.damaged += 1
        if self.damaged == 1:
            message = f"{self._name} has damaged entries; they are ignored, {self._if_damaged}. Check the disk"
            warnings.warn(message, stacklevel=2)
        return False

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_database(self.path if self.usable else None, self._schema)
        return self._connection


_files_in_use: weakref.WeakSet[EntryFile] = weakref.WeakSet()


@atexit.register
def _close_files() -> None:
    """Close all files, so that SQLite moves its write-ahead logs into them and removes the logs."""
    # A process of the command ``qabench`` ends without calling ``__del__``.
    for file in list(_files_in_use):
        file.close()
