"""Rows of the file of Rivers as rows of the dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qabench.data.rows import Row, read_json_lines

FIELDS = ("id", "question", "answer", "continent")


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Return the questions of a file. Raises DataError that names file, line and field."""
    return map(parse_row, read_json_lines(path))


def parse_row(row: Row) -> dict[str, Any]:
    """Return a question with its answer."""
    row.only(*FIELDS)
    return {field: row.get(field, str) for field in FIELDS}
