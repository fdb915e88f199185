"""Persistent cache of model replies, shared by all processes.

Judges, evaluators and runs use the same file. Replies never expire; ``qabench cache clear`` deletes them.
"""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from qabench.io.files import cache_dir
from qabench.io.sqlite import DATABASE_ERRORS, EntryCheck, entry_checksum, open_database
from qabench.llm.exchange import ChatRequest, Reply
from qabench.llm.owners import has_ended, new_owner

T = TypeVar("T")
LEASE_SECONDS = 30.0
LONGEST_LEASE = 3600.0
SECONDS_TO_WAIT_FOR_OTHERS = 30.0
KEYS_PER_QUERY = 500
TABLE = "checked_replies"
SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS {TABLE} (
    key BLOB PRIMARY KEY, reply TEXT NOT NULL, checksum BLOB NOT NULL,
    model TEXT NOT NULL, namespace TEXT NOT NULL, made REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
"""


class ReplyCache:
    """A SQLite file of replies by ``ChatRequest.key``, safe for several processes at once.

    A process claims a key before it makes the call; other processes that need the same reply wait for it. A claim ends
    with the reply, when it is released, when its process has ended, or when it was not renewed for ``lease`` seconds.
    Each reply is written as soon as it arrives. Calls that were in flight when a process was killed are made, and paid
    for, again.

    Each entry has a checksum over key and reply. A damaged entry counts as missing, and the first one causes a
    warning. If the file cannot be used (damaged, read-only, full), there is a warning, and from then on replies are
    kept in memory and lost when the process ends.

    Attributes:
        damaged: the number of damaged entries that were found.
    """

    def __init__(self, path: Path | None = None, lease: float = LEASE_SECONDS) -> None:
        self._connection: sqlite3.Connection | None = None
        self.path = path or cache_dir() / "llm-replies.sqlite"
        self.lease = lease
        self.owner = new_owner()
        self.usable = True
        self._check = EntryCheck("cache of model replies", self.path, "and their calls are repeated and paid for again")

    @property
    def damaged(self) -> int:
        return self._check.damaged

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Reply]:
        """The known replies, by key."""
        wanted = list(keys)
        return self._attempt(lambda connection: self._find(connection, wanted))

    def claim(self, key: bytes) -> Reply | bool:
        """The reply if it is known; otherwise True if this cache now holds the claim, False if another owner has it."""
        return self._attempt(lambda connection: self._claim(connection, key))

    def text(self, key: bytes) -> str | None:
        """The text stored under a key, for replies that are not ``Reply`` objects; None if there is none."""
        return self._attempt(lambda connection: self._texts(connection, [key]).get(key))

    def keep(self, key: bytes, text: str, model: str, namespace: str = "") -> None:
        """Stores an ASCII text under a key; one that is already stored is replaced."""
        self._attempt(lambda connection: self._insert(connection, key, text, model, namespace))

    def settle(self, key: bytes, request: ChatRequest, reply: Reply) -> Reply:
        """Stores a reply and ends the claim. Returns the stored reply: the first one if there are two."""
        return self._attempt(lambda connection: self._settle(connection, key, request, reply))

    def release(self, key: bytes) -> None:
        """Ends the claim of this cache, if it still has it."""
        self._attempt(
            lambda connection: connection.execute(
                "DELETE FROM claims WHERE key = ? AND owner = ?", (key, self.owner)
            ).close()
        )

    def renew(self) -> None:
        """Extends the claims of this cache by ``lease`` seconds from now."""
        self._attempt(
            lambda connection: connection.execute(
                "UPDATE claims SET expires = ? WHERE owner = ?", (time.time() + self.lease, self.owner)
            ).close()
        )

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        if self._connection is not None and self.usable:  # in memory, closing would lose what was paid for
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _claim(self, connection: sqlite3.Connection, key: bytes) -> Reply | bool:
        with _transaction(connection):
            if known := self._find(connection, [key]):
                return known[key]
            row = connection.execute("SELECT owner, expires FROM claims WHERE key = ?", (key,)).fetchone()
            if row and not self._is_over(*row):
                return False
            expires = time.time() + self.lease
            connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (key, self.owner, expires))
            return True

    def _is_over(self, owner: object, expires: object) -> bool:
        """Whether a claim no longer holds. The columns of a damaged row can have any type."""
        if not isinstance(owner, bytes) or not isinstance(expires, float):
            return True
        left = expires - time.time()
        # Longer than any lease: the clock was set back since.
        return left < 0 or left > LONGEST_LEASE or has_ended(owner.decode("ascii", "replace"))

    def _find(self, connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, Reply]:
        return {key: Reply(**json.loads(text)) for key, text in self._texts(connection, keys).items()}

    def _texts(self, connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, str]:
        found: dict[bytes, str] = {}
        wanted = set(keys)
        for start in range(0, len(keys), KEYS_PER_QUERY):
            some = keys[start : start + KEYS_PER_QUERY]
            query = f"SELECT key, reply, checksum FROM {TABLE} WHERE key IN ({','.join('?' * len(some))})"
            for key, reply, checksum in connection.execute(query, some):
                if self._check.holds(key, reply, checksum) and key in wanted:
                    found[key] = reply.decode("ascii")
        return found

    def _insert(self, connection: sqlite3.Connection, key: bytes, text: str, model: str, namespace: str) -> None:
        connection.execute(
            f"INSERT OR REPLACE INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?)",
            (key, text, entry_checksum(key, text.encode()), model, namespace, time.time()),
        )

    def _settle(self, connection: sqlite3.Connection, key: bytes, request: ChatRequest, reply: Reply) -> Reply:
        text = json.dumps(asdict(reply))  # ASCII: a reply can contain a lone surrogate
        with _transaction(connection):
            known = self._find(connection, [key])
            if not known:  # replaces a damaged entry
                self._insert(connection, key, text, request.model, request.namespace)
            connection.execute("DELETE FROM claims WHERE key = ?", (key,))
            return known.get(key, reply)

    def _attempt(self, action: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return action(self._opened())
        except DATABASE_ERRORS as error:
            if not self.usable:
                raise
            self._give_up(error)
            return action(self._opened())

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_database(
                self.path if self.usable else None,
                SCHEMA,
                SECONDS_TO_WAIT_FOR_OTHERS,
                isolation_level=None,
                check_same_thread=False,
            )
        return self._connection

    def _give_up(self, error: Exception) -> None:
        self.usable = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        warnings.warn(
            f"the cache of model replies {self.path} cannot be used ({error}). Replies are kept in memory until this "
            "process ends, and are paid for again after that. To avoid it, stop, and delete the file or set "
            "QABENCH_CACHE to a folder that you can write to.",
            stacklevel=2,
        )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):  # the first error says more
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
