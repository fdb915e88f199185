"""Tables that users provide besides predictions: labels, and scores from other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.data.prediction_files import numbered_rows, read_bytes
from qabench.errors import InputError
from qabench.io.limits import MAX_REPLY_CHARACTERS, json_of


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table with its position, such as "labels.csv, line 3"."""

    where: str
    fields: Mapping[str, Any]


def read_table(path: str | Path, columns: Sequence[str]) -> list[TableRow]:
    """Return the rows of a table: CSV or TSV with a header, Parquet, JSONL, or a JSON list.

    Args:
        path: the file. "-" is standard input.
        columns: the columns that every row must have.

    Raises:
        InputError: the file cannot be read, has no rows, or lacks a column.
    """
    data, name = read_bytes(path)
    rows = []
    for number, item in numbered_rows(data, name, "id", "label", columns):
        where = f"{name}, line {number}"
        fields = _fields(item, where)
        lacking = [column for column in columns if column not in fields]
        if lacking:
            there = ", ".join(map(repr, fields)) or "none"
            raise InputError(
                f"{where} lacks the column {lacking[0]!r}; it has {there:.200}. "
                f"Columns that are needed: {', '.join(columns)}"
            )
        rows.append(TableRow(where, fields))
    if not rows:
        raise InputError(f"{name} has no rows; columns that are needed: {', '.join(columns)}")
    return rows


def _fields(item: Any, where: str) -> Mapping[str, Any]:
    if isinstance(item, bytes):
        try:
            item = json_of(item, MAX_REPLY_CHARACTERS)
        except ValueError as error:
            raise InputError(
                f"{where}: not JSON ({error}); a table has the suffix .csv, .tsv or .parquet"
            ) from None
    if not isinstance(item, Mapping):
        raise InputError(f"{where}: a JSON {type(item).__name__}, not an object")
    return item
