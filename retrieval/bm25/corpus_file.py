"""Files of documents that are read in parts: JSON lines and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.io.limits import json_of
from qabench.retrieval.bm25.arrays import Array

LINES_PER_OFFSET = 1024
SUFFIXES = (".jsonl", ".parquet")


@dataclass(frozen=True)
class CorpusFile:
    """A file with one document per line or row.

    Attributes:
        path: a ``.jsonl`` or ``.parquet`` file.
        column: the field or column with the text.
        size: the number of documents.
        offsets: for JSON lines, the byte offset of every 1,024th document.
        stamp: the size and modification time of the file, to detect changes.
    """

    path: Path
    column: str
    size: int
    offsets: Array
    stamp: tuple[int, int]

    @classmethod
    def open(cls, path: Path, column: str) -> CorpusFile:
        """Opens a file and counts its documents.

        Raises:
            InputError: the file cannot be read, has another format, is empty, or does not have the column.
        """
        if path.suffix not in SUFFIXES:
            raise InputError(f"{path} is neither a .jsonl nor a .parquet file")
        try:
            status = path.stat()
            size, offsets = _count_rows(path, column) if path.suffix == ".parquet" else _count_lines(path)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        if not size:
            raise InputError(f"{path} has no documents")
        return cls(path, column, size, offsets, (status.st_size, status.st_mtime_ns))

    @property
    def source(self) -> str:
        """The absolute path, as ``index.json`` holds it."""
        return str(self.path.absolute())

    def texts(self, start: int, end: int) -> Iterator[str]:
        """The documents from ``start`` (included) to ``end`` (excluded). Raises InputError for one without text."""
        for number, row in enumerate(self.rows(start, end, [self.column]), start):
            text = row.get(self.column)
            if not isinstance(text, str):
                raise InputError(f"{self.path}: document {number} has no text in {self.column!r}: {text!r:.60}")
            yield text

    def rows(self, start: int, end: int, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The rows from ``start`` (included) to ``end`` (excluded) with these columns; of JSON lines, with all."""
        if self.path.suffix == ".parquet":
            return parquet_rows(self.path, columns, start, end)
        return self._lines(start, end)

    def _lines(self, start: int, end: int) -> Iterator[dict[str, Any]]:
        number = start // LINES_PER_OFFSET * LINES_PER_OFFSET
        with self.path.open("rb") as file:
            file.seek(int(self.offsets[start // LINES_PER_OFFSET]))
            for line in file:
                if not line.strip():
                    continue
                if number >= end:
                    return
                if number >= start:
                    yield _row(line, f"{self.path}: document {number}")
                number += 1


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json_of(line)
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{where} is not a JSON object: {row!r:.60}")
    return row


def _count_lines(path: Path) -> tuple[int, Array]:
    offsets, size, place = [], 0, 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                if size % LINES_PER_OFFSET == 0:
                    offsets.append(place)
                size += 1
            place += len(line)
    return size, np.array(offsets, dtype=np.int64)


def _count_rows(path: Path, column: str) -> tuple[int, Array]:
    with opened_parquet(path) as file:
        if column not in file.schema_arrow.names:
            raise InputError(f"{path} has no column {column!r}; the columns are {', '.join(file.schema_arrow.names)}")
        return int(file.metadata.num_rows), np.empty(0, dtype=np.int64)


def parquet_rows(path: Path, columns: Sequence[str], start: int, end: int) -> Iterator[dict[str, Any]]:
    """Columns of the rows from ``start`` (included) to ``end`` (excluded), read in small batches."""
    with opened_parquet(path) as file:
        first = 0
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if first + rows > start and first < end:
                table = file.read_row_group(group, columns=list(columns))
                kept = slice(max(start - first, 0), min(end - first, rows))
                for batch in table.slice(kept.start, kept.stop - kept.start).to_batches(1024):
                    yield from batch.to_pylist()
            first += rows


def opened_parquet(path: Path) -> Any:
    """The file as a ``pyarrow.parquet.ParquetFile``. Raises InputError if it is not one."""
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowException as error:
        raise InputError(f"{path} is not a Parquet file, or is damaged: {error}") from None
