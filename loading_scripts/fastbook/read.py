"""Readers of the three file formats of fastbook-benchmark: JSON of questions, notebooks, CSV of keywords."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from qabench.data.rows import Row, read_json
from qabench.errors import DataError


def read_questions(path: Path) -> Iterator[Row]:
    """Yield the questions of a ``fastbook-benchmark.json``, in order; ``where`` counts them from 0.

    Raises:
        DataError: not UTF-8, not JSON (with line and column), or not an object whose only field is a list of objects.
    """
    for i, value in enumerate(read_object(path).only("questions").get("questions", list)):
        yield Row.of(value, f"{path}, row {i}")


def read_object(path: Path) -> Row:
    """Return a file that is one JSON object, such as a notebook.

    Raises:
        DataError: not UTF-8, not JSON (with line and column), or not an object.
    """
    return Row.of(read_json(path), str(path))


def read_csv(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a CSV file whose header is ``columns``, all fields strings.

    Blank lines are skipped.

    Raises:
        DataError: not UTF-8, not CSV, another header, or a row with too many or too few fields.
    """
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    line = 1
    try:
        header = next(reader, [])
        if header != list(columns):
            raise DataError(f"{path}, line 1: expected the columns {', '.join(columns)}, got {str(header)[:120]}")
        line = reader.line_num + 1
        for fields in reader:
            where = f"{path}, line {line}"
            line = reader.line_num + 1
            if not fields:
                continue
            if len(fields) < len(columns):
                raise DataError(f"{where}: the field {columns[len(fields)]!r} is missing")
            if len(fields) > len(columns):
                raise DataError(f"{where}: {len(fields)} fields, but the header has {len(columns)}")
            yield Row.of(dict(zip(columns, fields, strict=True)), where)
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: not CSV ({error})") from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}") from None
