"""Listing and clearing the cache of model replies."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from qabench.errors import QabenchError
from qabench.llm.cache import TABLE, ReplyCache

# A name with a provider, such as "openai/gpt-4o", is also found without it.
_OF_MODEL = "(?1 IS NULL OR model = ?1 OR substr(model, -length(?1) - 1) = '/' || ?1)"


@dataclass(frozen=True, slots=True)
class StoredReplies:
    """The stored replies of one model.

    Attributes:
        model: the model's name, for runs with its provider.
        replies: the number of replies.
        bytes: the length of their texts; the file is larger.
        oldest: the date and time of the oldest one, in ISO format.
        newest: those of the newest one.
    """

    model: str
    replies: int
    bytes: int
    oldest: str
    newest: str


def replies_path() -> Path:
    """The file with the replies of all models, of judges and of runs."""
    return ReplyCache().path


def stored_replies() -> list[StoredReplies]:
    """All stored replies by model; [] if there are none, or the file cannot be read."""
    if not replies_path().is_file():
        return []
    query = f"SELECT model, count(*), sum(length(reply)), min(made), max(made) FROM {TABLE} GROUP BY model"
    try:
        with closing(sqlite3.connect(f"file:{replies_path()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(f"{query} ORDER BY model").fetchall()
    except sqlite3.Error:  # damaged, or of an older version: not used either
        return []
    return [StoredReplies(model, n, size, _date(oldest), _date(newest)) for model, n, size, oldest, newest in rows]


def clear(model: str | None = None, older_than: float | None = None) -> int:
    """Deletes replies and returns their number.

    Args:
        model: only replies of this model; None means all.
        older_than: only replies at least this many seconds old; None means all.

    Raises:
        QabenchError: the replies cannot be deleted.
    """
    if not replies_path().is_file():
        return 0
    with _opened() as connection:
        count = connection.execute(
            f"DELETE FROM {TABLE} WHERE made <= ?2 AND {_OF_MODEL}", (model, time.time() - (older_than or 0.0))
        ).rowcount
        connection.commit()
        connection.execute("VACUUM")  # else the file keeps its size
    return count


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(replies_path())) as connection:
            yield connection
    except sqlite3.Error as error:
        raise QabenchError(f"the replies in {replies_path()} cannot be deleted: {error}") from error


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
