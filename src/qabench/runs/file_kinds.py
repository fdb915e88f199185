"""Recognizes files of results: Inspect logs, logs of other harnesses, and predictions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from qabench.data.rows import Row, SourceRow, read_json_lines, read_json_list
from qabench.errors import DataError

LOG, DETAILS, LINES = ".eval", ".parquet", ".jsonl"
# The suffixes of files that are read in folders of logs.
SUFFIXES = (LOG, DETAILS, LINES, ".json")
# Fields of an lm-evaluation-harness sample, and of an Every Eval Ever instance.
LM_EVAL_FIELDS = {"doc_id", "doc", "filtered_resps"}
SHARED_FIELDS = {"evaluation_id", "sample_id", "evaluation"}
# The beginning of a file is enough to recognize its kind.
_START_BYTES = 4096
# The start of an Inspect log in JSON. Inspect's logs.json and eval-set.json, which are beside the
# logs of a suite, start in another way.
_LOG_START = re.compile(rb'\s*\{\s*"(version|status|eval)"\s*:')
_POINTER_START = b"version https://git-lfs.github.com/spec/"


def is_log(path: str | Path) -> bool:
    """Tell whether a path names an Inspect AI log (.eval), or is such a log in JSON."""
    path = Path(path)
    if path.suffix != ".json" or not path.is_file():
        return path.suffix == LOG
    return starts_as_log(path)


def starts_as_log(path: Path) -> bool:
    """Tell whether a file starts like an Inspect log in JSON."""
    with path.open("rb") as file:
        return _LOG_START.match(file.read(_START_BYTES)) is not None


def lm_eval_rows(path: Path) -> list[SourceRow] | None:
    """Return the lm-evaluation-harness samples in a file, or None if it is another file.

    Raises:
        DataError: a row after the first one is damaged.
    """
    if path.suffix != LINES or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            first_line = next(filter(bytes.strip, file), b"")
    except OSError:
        # The reader of predictions reports the error.
        return None
    # The text of the first line excludes most files of predictions, which would otherwise be parsed
    # twice.
    is_list = first_line.lstrip().startswith(b"[")
    if not is_list and b'"filtered_resps"' not in first_line:
        return None
    rows = sample_rows(path)
    try:
        first = next(rows, None)
    except (DataError, OSError):
        return None
    if first is None or not first.fields.keys() >= LM_EVAL_FIELDS:
        return None
    return [first, *rows]


def first_row(path: Path) -> Row:
    """Return the first row of JSON Lines or of a JSON list, or {} if none can be read."""
    try:
        return next((row.fields for row in sample_rows(path)), {})
    except (DataError, OSError):
        return {}


def sample_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of JSON Lines, or of a list, which lm-evaluation-harness wrote before 0.4.3."""
    with path.open("rb") as file:
        is_list = file.read(_START_BYTES).lstrip().startswith(b"[")
    yield from read_json_list(path) if is_list else read_json_lines(path)


def pointer_error(path: Path) -> str | None:
    """Say how to replace a Git LFS pointer by its file, or return None for other files."""
    with path.open("rb") as file:
        is_pointer = file.read(len(_POINTER_START)) == _POINTER_START
    if not is_pointer:
        return None
    return "is a Git LFS pointer, not the file itself; in its repository, run: git lfs pull"
