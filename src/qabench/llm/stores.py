"""The two stores of model replies, of judges and of runs: listing and clearing them.

Replies do not expire; they are kept until they are cleared here.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from qabench.errors import QabenchError
from qabench.llm.cache import TABLE, ReplyCache

FOLDER_VARIABLE = "INSPECT_CACHE_DIR"


@dataclass(frozen=True, slots=True)
class Store:
    """The stored replies of one model.

    Attributes:
        kind: "judges" or "runs".
        model: the model's name.
        replies: the number of replies.
        bytes: their size on disk; None if several models share a file.
        path: the file or folder.
    """

    kind: str
    model: str
    replies: int
    bytes: int | None
    path: Path


def stores() -> list[Store]:
    """All stored replies by model, of judges and of runs."""
    return [*_of_judges(), *_of_runs()]


def clear(model: str | None = None, older_than: float | None = None) -> int:
    """Deletes replies and returns their number.

    Args:
        model: only replies of this model; None means all.
        older_than: only replies at least this many seconds old; None means all.

    Raises:
        QabenchError: the replies cannot be deleted.
    """
    before = time.time() - (older_than or 0.0)
    try:
        return _clear_judges(model, before) + _clear_runs(model, before)
    except (OSError, sqlite3.Error) as error:
        raise QabenchError(f"the replies cannot be deleted: {error}") from error


def runs_folder() -> Path:
    """The folder in which Inspect AI caches the replies of runs."""
    from platformdirs import user_cache_path

    given = os.environ.get(FOLDER_VARIABLE)
    return Path(given) / "generate" if given else user_cache_path("inspect_ai") / "generate"


def _of_judges() -> list[Store]:
    path = ReplyCache().path
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            rows = connection.execute(f"SELECT model, count(*) FROM {TABLE} GROUP BY model ORDER BY model").fetchall()
    except sqlite3.Error:  # damaged, or of an older version: not used either
        return []
    size = path.stat().st_size
    return [Store("judges", model, count, size if len(rows) == 1 else None, path) for model, count in rows]


def _of_runs() -> list[Store]:
    root = runs_folder()
    found: dict[Path, list[int]] = {}
    for file in _files(root):
        found.setdefault(file.parent, []).append(file.stat().st_size)
    return [
        Store("runs", str(folder.relative_to(root)), len(sizes), sum(sizes), folder)
        for folder, sizes in sorted(found.items())
    ]


def _files(root: Path) -> list[Path]:
    return [file for file in root.rglob("*") if file.is_file()] if root.is_dir() else []


def _clear_judges(model: str | None, before: float) -> int:
    path = ReplyCache().path
    if not path.is_file():
        return 0
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(
            f"DELETE FROM {TABLE} WHERE made <= ? AND (? IS NULL OR model = ?)", (before, model, model)
        ).rowcount


def _clear_runs(model: str | None, before: float) -> int:
    root, count = runs_folder(), 0
    for file in _files(root):
        name = str(file.parent.relative_to(root))
        wanted = model is None or name == model or name.endswith(f"/{model}")
        if wanted and file.stat().st_mtime <= before:
            file.unlink()
            count += 1
    return count
