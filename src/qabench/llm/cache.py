"""Persistent cache of the replies of judges and evaluators, shared by all processes.

Replies never expire. ``qabench cache clear`` deletes them.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from qabench.io.files import cache_dir
from qabench.io.sqlite import EntryFile, entry_checksum
from qabench.llm.exchange import ChatRequest, Reply

TABLE = "checked_replies"
SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS {TABLE} (
    key BLOB PRIMARY KEY, reply TEXT NOT NULL, checksum BLOB NOT NULL,
    model TEXT NOT NULL, namespace TEXT NOT NULL, made REAL NOT NULL
) WITHOUT ROWID;
"""


class ReplyCache(EntryFile):
    """Replies by ``ChatRequest.key``, in a file that only its owner can read (``EntryFile``)."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(
            path or replies_path(),
            SCHEMA,
            name="cache of model replies",
            if_damaged="and their calls are repeated and paid for again",
            if_unusable=". Replies are kept in memory until this process ends, and are paid for again after "
            "that. To avoid it, stop, and delete the file or set QABENCH_CACHE to a folder that you can write to.",
        )

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Reply]:
        """Return the cached replies, by key."""
        keys = list(keys)
        return self.attempt(lambda connection: self._find(connection, keys))

    def store(self, key: bytes, request: ChatRequest, reply: Reply) -> Reply:
        """Store a reply, unless a nonempty one is stored or both are empty. Return the stored one."""
        return self.attempt(lambda connection: self._store(connection, key, request, reply))

    def _find(self, connection: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, Reply]:
        query = f"SELECT key, reply, checksum FROM {TABLE} WHERE key = ?"
        replies = {}
        for key in keys:
            for stored_key, reply, checksum in connection.execute(query, (key,)):
                if self.is_whole(stored_key, reply, checksum):
                    replies[stored_key] = Reply(**json.loads(reply.decode("ascii")))
        return replies

    def _store(
        self, connection: sqlite3.Connection, key: bytes, request: ChatRequest, reply: Reply
    ) -> Reply:
        # JSON in ASCII can store lone surrogates, which a reply may contain.
        text = json.dumps(asdict(reply))
        with connection:
            # This commits, or rolls back after an error.
            connection.execute("BEGIN IMMEDIATE")
            first = self._find(connection, [key]).get(key)
            # An empty reply is replaced by one that has text. A damaged entry was not found, and is
            # replaced, too.
            if first is not None and (not first.is_empty or reply.is_empty):
                return first
            entry = (
                key,
                text,
                entry_checksum(key, text.encode()),
                request.model,
                request.namespace,
                time.time(),
            )
            connection.execute(f"INSERT OR REPLACE INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?)", entry)
        return reply

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None and self.usable:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            with suppress(OSError):
                # ``touch`` does not change the mode of an existing file. A file of another user
                # cannot be changed.
                self.path.chmod(0o600)
        return super()._opened()


def replies_path() -> Path:
    """Return the path of the file with the replies of all judges and evaluators."""
    return cache_dir() / "llm-replies.sqlite"
