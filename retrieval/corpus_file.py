"""Files with one document per line or row: CSV, JSON lines and Parquet.

The last two can be read in parts.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.data.rows import Json
from qabench.errors import InputError, unreadable
from qabench.io.limits import json_of, numbered_lines
from qabench.io.tables import one_line, printable

LINES_PER_OFFSET = 1024
SUFFIXES = (".jsonl", ".parquet")
ROW_SUFFIXES = (".csv", ".tsv", ".json", *SUFFIXES)
LONGEST_CELL = 2**31 - 1  # characters of a CSV file's cell. The csv module's default is 131,072.


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


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file or dataset.

    Attributes:
        position: the number of rows before it.
        place: where it is, for messages, such as "line 7".
        fields: column -> value.
    """

    position: int
    place: str
    fields: dict[str, Any]


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a .csv, .tsv, .jsonl, .json or .parquet file. All cells of a CSV file are strings.

    Raises InputError: the file cannot be read, or has another format.
    """
    suffix = path.suffix.lower()
    if suffix not in ROW_SUFFIXES:
        raise InputError(f"{path} has an unknown format; allowed: {', '.join(ROW_SUFFIXES)}")
    if suffix == ".parquet":
        return number_rows(_parquet_rows(path, None, 0, None))
    placed = (
        _csv_rows(path, "\t" if suffix == ".tsv" else ",")
        if suffix in (".csv", ".tsv")
        else _json_rows(path)
    )
    return (Row(position, place, fields) for position, (place, fields) in enumerate(placed))


def number_rows(rows: Iterable[Json]) -> Iterator[Row]:
    """Yield rows that have no lines.

    Messages count them from 0, as ``datasets`` does.
    """
    return (
        Row(position, f"row {position} (from 0)", fields) for position, fields in enumerate(rows)
    )


@dataclass
class Documents:
    """The documents in rows. Iterating yields the id and text of each row that has text, and the row.

    An id is the value of ``id_column``. If that is None, it is the value of the column "id", or the
    row's position if the first row has no such column.

    Attributes:
        rows: the rows, which are read once.
        source: the name of the file or dataset, for messages.
        column: the column with the text.
        id_column: the column with the ids, or None.
        strict: whether a row without text is an error. Otherwise it is skipped.
        skipped: the number of rows that were skipped so far.
        first_skipped: the place of the first one.

    Raises:
        InputError: while iterating. A row has a text that is not a string, or no id. Or no row has
            text.
    """

    rows: Iterable[Row]
    source: str
    column: str
    id_column: str | None = None
    strict: bool = False
    skipped: int = 0
    first_skipped: str = ""

    def __iter__(self) -> Iterator[tuple[str, str, Row]]:
        columns: list[str] = []
        ids = self.id_column
        size = 0
        for row in self.rows:
            if not columns:
                columns = list(row.fields)
                ids = ids or ("id" if "id" in columns else None)
            text = self._text(row)
            if text is not None:
                yield self._id(row, ids), text, row
                size += 1
        if not columns:
            raise InputError(f"{self.source} has no documents")
        if not size:
            missing = "column" if self.column not in columns else "text in"
            raise InputError(
                f"{self.source} has no {missing} {self.column!r}; its columns are {', '.join(columns)}"
            )

    def note(self) -> str:
        """Return how many rows were skipped, and where the first one is. "" if there were none."""
        if not self.skipped:
            return ""
        rows = "1 row" if self.skipped == 1 else f"{self.skipped:,} rows"
        return f"{self.source}: skipped {rows} without text in {self.column!r}, the first in {self.first_skipped}"

    def _text(self, row: Row) -> str | None:
        text = row.fields.get(self.column)
        if isinstance(text, str) and text.strip():
            return text
        if self.strict or not isinstance(text, str | None):
            raise InputError(
                f"{self.source}, {row.place} has no text in {self.column!r}: {text!r:.60}; its columns are "
                f"{', '.join(row.fields)}"
            )
        self.skipped += 1
        self.first_skipped = self.first_skipped or row.place
        return None

    def _id(self, row: Row, column: str | None) -> str:
        value = row.fields.get(column or "id")
        has_id = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
        if has_id and column is not None:
            return str(value)
        if not has_id and column is None:
            return str(row.position)
        if has_id:
            problem = "has an id, but the first row has none; every row needs one"
        elif column in row.fields:
            problem = f"has the id {value!r:.60} in {column!r}; expected text or an integer"
        else:
            problem = f"has no column {column!r}; its columns are {', '.join(row.fields)}"
        raise InputError(f"{self.source}, {row.place} {problem}")


def _csv_rows(path: Path, delimiter: str) -> Iterator[tuple[str, Json]]:
    """Yield the lines on which rows begin, and the rows. Lines without a character are skipped."""
    limit = csv.field_size_limit(LONGEST_CELL)  # of the whole process
    names: list[str] = []
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            for cells in reader:
                first_line, line = line + 1, reader.line_num
                if names and len(cells) > len(names):
                    raise InputError(
                        f"{path}, line {first_line} has {len(cells)} cells; the header has {len(names)}"
                    )
                if names and cells:
                    # A cell that is missing at the end of a line is empty.
                    padded = cells + [""] * (len(names) - len(cells))
                    yield f"line {first_line}", dict(zip(names, padded, strict=True))
                names = names or cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path}, after line {line}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _json_rows(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield the places and rows of JSON lines, or of a .json file with a list of objects."""
    try:
        with path.open("rb") as file:
            is_list = file.read(1) == b"["
            file.seek(0)
            if not (is_list and path.suffix.lower() == ".json"):
                for number, line in numbered_lines(file):
                    yield f"line {number}", _row(line, f"{path}: line {number}")
                return
            content = file.read()
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        rows = json_of(content)
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({error})") from None
    for position, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InputError(f"{path}: row {position} is not a JSON object: {row!r:.60}")
        yield f"row {position} (from 0)", row


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
