"""Lists and clears the replies that runs keep in Inspect AI's cache: a folder for each model, a file for each reply."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from qabench.errors import QabenchError
from qabench.io.files import run_replies_dir
from qabench.llm.cache import StoredReplies


def stored_run_replies() -> list[StoredReplies]:
    """Return the replies of runs by model; [] if there are none."""
    rows = []
    for model, files in _files_by_model():
        states = [file.stat() for file in files]
        times = sorted(state.st_mtime for state in states)
        size = sum(state.st_size for state in states)
        rows.append(StoredReplies(model, len(files), size, _date(times[0]), _date(times[-1])))
    return rows


def clear_run_replies(model: str | None = None, older_than: float | None = None) -> int:
    """Delete replies of runs and return their number.

    Args:
        model: only replies of this model, with or without its provider; None means all.
        older_than: only replies at least this many seconds old; None means all.

    Raises:
        QabenchError: the replies cannot be deleted.
    """
    latest = time.time() - (older_than or 0.0)
    count = 0
    for name, files in _files_by_model():
        if model is not None and name != model and not name.endswith(f"/{model}"):
            continue
        for file in files:
            if file.stat().st_mtime <= latest:
                try:
                    file.unlink()
                except OSError as error:
                    raise QabenchError(f"the reply {file} cannot be deleted: {error.strerror or error}") from error
                count += 1
    return count


def _files_by_model() -> Iterator[tuple[str, list[Path]]]:
    root = run_replies_dir() / "generate"
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        if files := [path for path in folder.iterdir() if path.is_file()]:
            yield folder.relative_to(root).as_posix(), files


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
