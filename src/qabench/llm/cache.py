"""Replies kept for good: a call that was paid for is never made again, whoever asks, in whichever process."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from qabench.database import open_database
from qabench.llm.exchange import ChatRequest, Reply
from qabench.paths import cache_dir

T = TypeVar("T")
LEASE_SECONDS = 30.0
SECONDS_TO_WAIT_FOR_OTHERS = 30.0
KEYS_PER_QUERY = 500
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, reply TEXT NOT NULL, model TEXT NOT NULL, namespace TEXT NOT NULL, made REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
"""


class ReplyCache:
    """A SQLite file of replies by ``ChatRequest.key``, safe for several processes at once.

    Who wants to make a call claims its key first; others who want the same reply wait for it. A claim ends with the
    reply, with its release, or when its owner has not renewed it for ``lease`` seconds (it was killed). Replies are
    written one by one as they come in. A file that cannot be used (damaged, read-only, full) costs a warning: from
    then on replies are kept in memory, and lost with the process.
    """

    def __init__(self, path: Path | None = None, lease: float = LEASE_SECONDS) -> None:
        self._connection: sqlite3.Connection | None = None
        self.path = path or cache_dir() / "llm-replies.sqlite"
        self.lease = lease
        self.owner = uuid.uuid4().hex
        self.usable = True

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Reply]:
        """The replies that are known, by key."""
        wanted = list(keys)
        return self._attempt(lambda connection: _find(connection, wanted))

    def claim(self, key: bytes) -> Reply | bool:
        """The reply if it is known; else True if the key is now claimed by us, False if another one has it."""
        return self._attempt(lambda connection: self._claim(connection, key))

    def settle(self, key: bytes, request: ChatRequest, reply: Reply) -> Reply:
        """Keeps a reply and ends the claim. Gives the reply that is kept: the first one, should there be two."""
        return self._attempt(lambda connection: _settle(connection, key, request, reply))

    def release(self, key: bytes) -> None:
        """Ends our claim, if there still is one."""
        self._attempt(
            lambda connection: connection.execute(
                "DELETE FROM claims WHERE key = ? AND owner = ?", (key, self.owner)
            ).close()
        )

    def renew(self) -> None:
        """Says that we are alive: our claims hold for another ``lease`` seconds."""
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
            if known := _find(connection, [key]):
                return known[key]
            now = time.time()
            cursor = connection.execute(
                "INSERT INTO claims VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE "
                "SET owner = excluded.owner, expires = excluded.expires WHERE claims.expires < ?",
                (key, self.owner, now + self.lease, now),
            )
            return cursor.rowcount == 1

    def _attempt(self, action: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return action(self._opened())
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
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
            "process ends, and would have to be paid for again after that: stop, and delete the file or set "
            "QABENCH_CACHE to a folder that can be written to, unless you accept that.",
            stacklevel=2,
        )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _find(connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, Reply]:
    found: dict[bytes, Reply] = {}
    for start in range(0, len(keys), KEYS_PER_QUERY):
        some = keys[start : start + KEYS_PER_QUERY]
        rows = connection.execute(f"SELECT key, reply FROM replies WHERE key IN ({','.join('?' * len(some))})", some)
        found.update((key, Reply(**json.loads(reply))) for key, reply in rows)
    return found


def _settle(connection: sqlite3.Connection, key: bytes, request: ChatRequest, reply: Reply) -> Reply:
    text = json.dumps(asdict(reply))  # ASCII: a reply may hold a lone surrogate
    with _transaction(connection):
        connection.execute(
            "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)",
            (key, text, request.model, request.namespace, time.time()),
        )
        connection.execute("DELETE FROM claims WHERE key = ?", (key,))
        return _find(connection, [key])[key]
