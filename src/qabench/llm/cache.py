"""Persistent cache of the replies of judges and evaluators, shared by all processes.

Replies never expire. ``qabench cache clear`` deletes them.
"""

from __future__ import annotations

import json
import pickle
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from qabench.errors import QabenchError, unknown_name
from qabench.io.files import cache_dir, run_replies_dir
from qabench.io.sqlite import EntryFile, entry_checksum
from qabench.llm.exchange import ChatRequest, Reply

SECONDS_PER_DAY = 86_400
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
    """Replies by ``ChatRequest.key``.

    Only the owner of the file can read it. See ``EntryFile``.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(
            path or replies_path(),
            SCHEMA,
            "cache of model replies",
            "and their calls are repeated and paid for again",
            ". Replies are kept in memory until this process ends, and are paid for again after that. To avoid it, "
            "stop, and delete the file or set QABENCH_CACHE to a folder that you can write to.",
        )

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Reply]:
        """Return the cached replies, by key."""
        keys = list(keys)
        return self.attempt(lambda connection: self._find(connection, keys))

    def store(self, key: bytes, request: ChatRequest, reply: Reply) -> Reply:
        """Store a reply, and return the stored one: the first one that is not empty if there are several."""
        return self.attempt(lambda connection: self._store(connection, key, request, reply))

    def _find(self, connection: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, Reply]:
        query = f"SELECT key, reply, checksum FROM {TABLE} WHERE key = ?"
        rows = (row for key in keys for row in connection.execute(query, (key,)))
        return {
            row[0]: Reply(**json.loads(row[1].decode("ascii"))) for row in rows if self.is_whole(*row)
        }

    def _store(
        self, connection: sqlite3.Connection, key: bytes, request: ChatRequest, reply: Reply
    ) -> Reply:
        text = json.dumps(asdict(reply))  # ASCII: a reply can contain a lone surrogate
        with connection:  # commits, or rolls back after an error
            connection.execute("BEGIN IMMEDIATE")
            first = self._find(connection, [key]).get(key)
            if first is None or (first.is_empty and not reply.is_empty):  # or it is damaged
                first = None
                entry = (
                    key,
                    text,
                    entry_checksum(key, text.encode()),
                    request.model,
                    request.namespace,
                    time.time(),
                )
                connection.execute(f"INSERT OR REPLACE INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?)", entry)
        return first or reply

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None and self.usable:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            with suppress(OSError):  # a file of an older version, or of another user
                self.path.chmod(0o600)
        return super()._opened()


@dataclass(frozen=True, slots=True)
class StoredReplies:
    """The stored replies of one model: their number, and the length of their texts."""

    model: str
    replies: int
    bytes: int


def replies_path() -> Path:
    """Return the file with the replies of all judges and evaluators."""
    return cache_dir() / "llm-replies.sqlite"


def stored_replies() -> list[StoredReplies]:
    """Return all stored replies by model, of judges, then of runs, or [] if there are none that can be read."""
    query = f"SELECT model, count(*), sum(length(reply)) FROM {TABLE} GROUP BY model"
    try:
        with closing(sqlite3.connect(f"{replies_path().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(f"{query} ORDER BY model").fetchall()
    except sqlite3.Error:  # missing, damaged, or of an older version
        rows = []
    for model, files in _run_replies():
        rows.append((model, len(files), sum(file.stat().st_size for file in files)))
    return [StoredReplies(*row) for row in rows]


def clear(model: str | None = None, *, empty: bool = False, older_than: float | None = None) -> int:
    """Delete replies of judges and runs, and return their number.

    Args:
        model: only those of this model, as ``stored_replies`` names it.
        empty: only those without text.
        older_than: only those that are at least so many days old.

    Raises:
        InputError: no reply of this model is stored.
    """
    models = [row.model for row in stored_replies()]
    if model is not None and model not in models:
        raise unknown_name("no replies are stored of the model", model, list(dict.fromkeys(models)))
    before = time.time() - (older_than or 0) * SECONDS_PER_DAY
    path, count = replies_path(), 0
    try:
        if path.is_file():
            with closing(sqlite3.connect(path)) as connection:
                rows = connection.execute(
                    f"SELECT key, reply FROM {TABLE} WHERE (? IS NULL OR model = ?) AND made <= ?",
                    (model, model, before),
                ).fetchall()
                keys = [(key,) for key, reply in rows if not empty or _is_empty(reply)]
                connection.executemany(f"DELETE FROM {TABLE} WHERE key = ?", keys)
                count = len(keys)
                connection.commit()
                connection.execute("VACUUM")  # else the file keeps its size
        for name, files in _run_replies():
            for file in files:
                if model not in (None, name) or file.stat().st_mtime > before:
                    continue
                if empty and not _is_empty_reply_of_run(file):
                    continue
                file.unlink()
                count += 1
    except (sqlite3.Error, OSError) as error:
        raise QabenchError(f"the replies in {path} cannot be deleted: {error}") from error
    return count


def _is_empty(reply: str | bytes) -> bool:
    """Tell whether a stored reply is empty. One that cannot be read is not."""
    try:
        return Reply(**json.loads(reply)).is_empty
    except (ValueError, TypeError):
        return False


def _is_empty_reply_of_run(file: Path) -> bool:
    """Tell whether a file of Inspect's cache has an empty reply. One that cannot be read has not."""
    try:
        with file.open("rb") as stream:
            output = pickle.load(stream)[1]
        refused = output.stop_reason == "content_filter" or output.message.tool_calls
        return not output.completion.strip() and not refused
    except Exception:  # whatever a damaged pickle causes
        return False


def _run_replies() -> Iterator[tuple[str, list[Path]]]:
    """Yield the models of runs with the files in Inspect's cache: a folder for each model, a file for each reply."""
    root = run_replies_dir() / "generate"
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        if files := [path for path in folder.iterdir() if path.is_file()]:
            yield folder.relative_to(root).as_posix(), files
