"""Rows of the file of Rivers as rows of the dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qabench.data.rows import Row, read_json_lines

FIELDS = ("id", "question", "answer", "continent")


def parse_row(row: Row) -> dict[str, Any]:
    """A question with its answer. Raises DataError that names file, line and field."""
    row.only(*FIELDS)
    return {field: row.get(field, str) for field in FIELDS}


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The questions of a file, in order."""
    return map(parse_row, read_json_lines(path))
