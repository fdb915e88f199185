"""Stored replies of judges and of runs: counts and sizes by model, and deletion.

Replies of judges and evaluators are in ``ReplyCache``'s file. Those of runs are in files of Inspect
AI's cache, one for each reply.
"""

from __future__ import annotations

import json
import pickle
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from qabench.errors import QabenchError, unknown_name
from qabench.io.files import run_replies_dir
from qabench.llm.cache import TABLE, replies_path
from qabench.llm.exchange import Reply

SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True)
class StoredReplies:
    """The stored replies of one model: their number, and their size in bytes."""

    model: str
    replies: int
    bytes: int


def stored_replies() -> list[StoredReplies]:
    """Return what is stored of each model, judges before models of runs.

    Replies are not read, so damaged ones count, too. If the judges' file cannot be read, it counts
    as empty.
    """
    query = f"SELECT model, count(*), sum(length(reply)) FROM {TABLE} GROUP BY model"
    try:
        with closing(sqlite3.connect(f"{replies_path().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(f"{query} ORDER BY model").fetchall()
    except sqlite3.Error:
        # The table is missing, damaged, or of an older version.
        rows = []
    for model, files in _run_replies():
        rows.append((model, len(files), sum(file.stat().st_size for file in files)))
    return [StoredReplies(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Selection:
    """Replies that are to be deleted: keys of judges' replies, files of runs, and both by model.

    Attributes:
        keys: the keys of judges' replies.
        files: the files of replies in runs.
        models: the number and size of both, by model.
        tokens: the prompt and reply tokens of the judges' replies, as the servers counted them.
            Those of runs are not known without reading each file.
    """

    keys: list[bytes]
    files: list[Path]
    models: list[StoredReplies]
    tokens: tuple[int, int] = (0, 0)

    def delete(self) -> int:
        """Delete the replies, and return their number."""
        path = replies_path()
        with _deleting():
            if self.keys:
                with closing(sqlite3.connect(path)) as connection:
                    connection.executemany(
                        f"DELETE FROM {TABLE} WHERE key = ?", [(key,) for key in self.keys]
                    )
                    connection.commit()
                    # Deleting rows alone does not make the file smaller.
                    connection.execute("VACUUM")
            for file in self.files:
                file.unlink(missing_ok=True)
        return len(self.keys) + len(self.files)


def select(
    model: str | None = None, *, empty: bool = False, older_than: float | None = None
) -> Selection:
    """Select stored replies of judges and runs, which ``Selection.delete`` then deletes.

    Args:
        model: only those of this model, as ``stored_replies`` names it.
        empty: only those without text.
        older_than: only those that are at least this many days old.

    Raises:
        InputError: no reply of this model is stored.
    """
    models = [row.model for row in stored_replies()]
    if model is not None and model not in models:
        raise unknown_name("no replies are stored of the model", model, list(dict.fromkeys(models)))
    before = time.time() - (older_than or 0) * SECONDS_PER_DAY
    keys: list[bytes] = []
    files: list[Path] = []
    sizes: dict[str, list[int]] = {}
    prompt_tokens = completion_tokens = 0
    with _deleting():
        for key, name, text in _judge_replies(model, before):
            reply = _reply_of(text)
            if empty and not (reply and reply.is_empty):
                continue
            keys.append(key)
            sizes.setdefault(name, []).append(len(text))
            if reply and isinstance(reply.prompt_tokens, int):
                prompt_tokens += reply.prompt_tokens
            if reply and isinstance(reply.completion_tokens, int):
                completion_tokens += reply.completion_tokens
        for name, paths in _run_replies():
            for file in paths:
                if model not in (None, name) or file.stat().st_mtime > before:
                    continue
                if not empty or _is_empty_reply_of_run(file):
                    files.append(file)
                    sizes.setdefault(name, []).append(file.stat().st_size)
    selected = [StoredReplies(name, len(each), sum(each)) for name, each in sizes.items()]
    return Selection(keys, files, selected, (prompt_tokens, completion_tokens))


@contextmanager
def _deleting() -> Iterator[None]:
    """Report an error of reading or deleting replies as a QabenchError that they cannot be deleted."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        path = replies_path()
        raise QabenchError(f"the replies in {path} cannot be deleted: {error}") from error


def _judge_replies(model: str | None, before: float) -> list[tuple[bytes, str, str]]:
    """Return key, model and JSON text of the judges' replies made at or before a time."""
    path = replies_path()
    if not path.is_file():
        return []
    query = f"SELECT key, model, reply FROM {TABLE} WHERE (? IS NULL OR model = ?) AND made <= ?"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query, (model, model, before)).fetchall()


def _reply_of(text: str) -> Reply | None:
    """Return a stored reply, or None if it cannot be read."""
    try:
        return Reply(**json.loads(text))
    except (ValueError, TypeError):
        return None


def _is_empty_reply_of_run(file: Path) -> bool:
    """Tell whether a file of Inspect's cache has an empty reply. False for an unreadable one."""
    try:
        with file.open("rb") as stream:
            output = pickle.load(stream)[1]
        refused = output.stop_reason == "content_filter" or output.message.tool_calls
        return not output.completion.strip() and not refused
    except Exception:
        # A damaged pickle can raise anything.
        return False


def _run_replies() -> Iterator[tuple[str, list[Path]]]:
    """Yield the models of runs with the files of Inspect's cache, one for each reply."""
    root = run_replies_dir() / "generate"
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        if files := [path for path in folder.iterdir() if path.is_file()]:
            yield folder.relative_to(root).as_posix(), files
