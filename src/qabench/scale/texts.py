"""Normalizing a column of texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from qabench.scale.parts import ROWS_PER_PART, Columns, Progress, Rows, cells, open_source, run
from qabench.text import Lemmatizer, Normalizer
from qabench.text.normalize import check_key


def normalize(
    source: Any,
    output: str | Path,
    column: str,
    lemmatizer: str | Lemmatizer = "auto",
    *,
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
) -> list[Path]:
    """Write the official FanOutQA normal form of each text as the column "normalized".

    Args:
        source: a ``datasets.Dataset``, or the path of a .jsonl or .parquet file.
        output: the folder of the Parquet files; see ``qabench.scale.parts.run``.
        column: the column of the texts; other objects are converted by ``str``.
        lemmatizer: see ``qabench.text.resolve_lemmatizer``.
        rows_per_part: the rows of one file.
        progress: called with the number of rows processed and of all rows.

    Returns:
        The files, in the order of the rows.

    Raises:
        InputError: the source cannot be read, or the folder has other results.
        MissingExtra: the lemmatizer is not installed.
    """
    normalizer = Normalizer(lemmatizer)
    load = partial(_load, column, normalizer.lemmatizer, normalizer.lemmatizer.key)
    what = {"job": "normalize", "column": column, **normalizer.signature()}
    return run(open_source(source, [column]), output, load, {"normalized": "string"}, what, rows_per_part, progress)


def _load(column: str, lemmatizer: Lemmatizer, key: str) -> Callable[[Rows], Columns]:
    check_key(lemmatizer, key)
    return partial(_normalized, column, Normalizer(lemmatizer))


def _normalized(column: str, normalizer: Normalizer, rows: Rows) -> Columns:
    texts = [str(cell) for cell in cells(rows, column)]
    forms = normalizer.batch(texts)
    return {"normalized": [forms[text] for text in texts]}
