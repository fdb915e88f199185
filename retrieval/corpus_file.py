"""Files with one document per line or row, JSON lines and Parquet, that can be read in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.data.rows import Json
from qabench.errors import InputError, unreadable
from qabench.io.limits import json_of
from qabench.io.tables import one_line, printable

LINES_PER_OFFSET = 1024
SUFFIXES = (".jsonl", ".parquet")


@dataclass(frozen=True)
class CorpusFile:
    """A file with one document per line or row.

    Attributes:
        path: a ``.jsonl`` or ``.parquet`` file.
        size: the number of documents.
        offsets: for JSON lines, the byte offset of every 1,024th document.
        stamp: the size and modification time of the file, to detect changes.
    """

    path: Path
    size: int
    offsets: list[int]
    stamp: tuple[int, int]

    @classmethod
    def open(cls, path: Path, column: str) -> CorpusFile:
        """Open a file and count its documents."""
        if path.suffix not in SUFFIXES:
            raise InputError(f"{path} is neither a .jsonl nor a .parquet file")
        try:
            status = path.stat()
            size, offsets = (
                _count_rows(path, column) if path.suffix == ".parquet" else _count_lines(path)
            )
        except OSError as error:
            raise unreadable(path, error) from None
        if not size:
            raise InputError(f"{path} has no documents")
        return cls(path, size, offsets, (status.st_size, status.st_mtime_ns))

    def rows(
        self, start: int = 0, end: int | None = None, columns: Sequence[str] = ()
    ) -> Iterator[Json]:
        """Yield the rows from ``start`` (included) to ``end`` (excluded)."""
        end = self.size if end is None else end
        if self.path.suffix == ".parquet":
            return _parquet_rows(self.path, list(columns) or None, start, end)
        return self._lines(start, end)

    def _lines(self, start: int, end: int) -> Iterator[Json]:
        number = start // LINES_PER_OFFSET * LINES_PER_OFFSET
        with self.path.open("rb") as file:
            file.seek(self.offsets[start // LINES_PER_OFFSET])
            for line in file:
                if not line.strip():
                    continue
                if number >= end:
                    return
                if number >= start:
                    yield _row(line, f"{self.path}: document {number}")
                number += 1


def _row(line: bytes, place: str) -> Json:
    try:
        row = json_of(line)
    except ValueError as error:
        raise InputError(f"{place} is not valid JSON ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{place} is not a JSON object: {row!r:.60}")
    return row


def _count_lines(path: Path) -> tuple[int, list[int]]:
    offsets, size, place = [], 0, 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                if size % LINES_PER_OFFSET == 0:
                    offsets.append(place)
                size += 1
            place += len(line)
    return size, offsets


def _count_rows(path: Path, column: str) -> tuple[int, list[int]]:
    with _opened_parquet(path) as file:
        if column not in file.schema_arrow.names:
            raise InputError(
                f"{path} has no column {column!r}; the columns are {', '.join(file.schema_arrow.names)}"
            )
        return int(file.metadata.num_rows), []


def _parquet_rows(
    path: Path, columns: list[str] | None, start: int, end: int | None
) -> Iterator[Json]:
    """Yield rows of a Parquet file, read in small batches."""
    with _opened_parquet(path) as file:
        end = int(file.metadata.num_rows) if end is None else end
        first = 0
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if first + rows > start and first < end:
                table = file.read_row_group(group, columns=columns)
                skipped = max(start - first, 0)
                for batch in table.slice(skipped, min(end - first, rows) - skipped).to_batches(
                    1024
                ):
                    yield from batch.to_pylist()
            first += rows


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    """Provide a ``pyarrow.parquet.ParquetFile``.

    Raises InputError if the file is not one, or is damaged.
    """
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        reason = printable(one_line(error), 300)
        raise InputError(f"{path} is not a Parquet file, or is damaged: {reason}") from None
