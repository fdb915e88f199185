"""Read the documents of a corpus: files and datasets with one document per row."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

from qabench.data.prediction_files import UTF_16
from qabench.data.rows import SourceRow, json_list_rows, json_rows
from qabench.errors import InputError, unreadable
from qabench.io.escaping import one_line
from qabench.io.limits import json_of
from qabench.retrieval.bm25.rows import ERROR, SKIP, joined_text
from qabench.retrieval.documents import Document, document_of

STDIN = "-"
GZIP = ".gz"
# ``Dataset.save_to_disk`` writes the first file, and ``DatasetDict.save_to_disk`` the second.
SAVED_DATASET, SAVED_SPLITS = "state.json", "dataset_dict.json"
# Columns with ids. The first that exists is used.
IDS = ("id", "docno", "doc_id", "docid", "_id")
ROW_KEYS = {*IDS, "text", "title", "query", "question"}
# The longest cell of a CSV file, in characters. The csv module's default is 131,072.
LONGEST_CELL = 2**31 - 1


def is_file(source: str) -> bool:
    """Tell whether a source is standard input, an existing file, or a name with a known suffix."""
    return source == STDIN or os.path.isfile(source) or suffix_of(source) in READERS


def is_saved(source: str) -> bool:
    """Tell whether a source is a folder that ``save_to_disk`` has written."""
    return any(os.path.isfile(os.path.join(source, name)) for name in (SAVED_DATASET, SAVED_SPLITS))


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a file in lowercase, without ".gz" at its end."""
    return Path(str(path).lower().removesuffix(GZIP)).suffix


def read_rows(path: str | Path, columns: Sequence[str] = ()) -> Iterator[SourceRow]:
    """Yield the rows of a file, which may be compressed with gzip, or of standard input ("-").

    All cells of a CSV file are strings. Standard input is JSON lines, a JSON list, Parquet, a table
    whose header has one of ``columns``, or lines of text.

    Raises InputError if the file cannot be read, or has another format.
    """
    name = "standard input" if str(path) == STDIN else str(path)
    suffix = suffix_of(path)
    if str(path) != STDIN and suffix not in READERS:
        raise InputError(
            f"{path} has an unknown format; allowed: {', '.join(READERS)}, also with {GZIP}"
        )
    try:
        with ExitStack() as stack:
            if str(path) == STDIN:
                data = sys.stdin.buffer.read()
                suffix = _suffix_of_data(data, columns)
                file: IO[bytes] = io.BytesIO(data)
            elif str(path).lower().endswith(GZIP):
                file = stack.enter_context(gzip.open(path, "rb"))  # type: ignore[arg-type]
            else:
                file = stack.enter_context(Path(path).open("rb"))
            yield from READERS[suffix](file, name)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise _not_utf8(name, error, 0) from None
    except FileNotFoundError as error:
        raise unreadable(name, error) from None
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {name}: {one_line(error):.300}") from None


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row with text.

    Attributes:
        position: the row's number in the source, from 0.
        fields: all fields of the row.
        id: the row's id, or its position if there is no column with ids.
        text: the joined text of the text columns.
        where: the row's place in the file, for messages.
    """

    position: int
    fields: Mapping[str, Any]
    id: str
    text: str
    where: str


@dataclass(frozen=True, slots=True)
class TextRows:
    """Rows with text.

    Attributes:
        rows: the rows.
        id_column: the column with the ids, if there is one.
        skipped: the places of the rows without text, such as "corpus.csv, line 3".
    """

    rows: list[TextRow]
    id_column: str | None
    skipped: list[str]


def rows_with_text(
    rows: Iterable[SourceRow],
    source: str,
    columns: Sequence[str] = ("text",),
    id_column: str | None = None,
    empty: str = SKIP,
    advice: str = "",
) -> TextRows:
    """Return the rows with text.

    Args:
        rows: the rows.
        source: the name of the file or dataset, for messages.
        columns: the columns with text. Several texts are joined by a newline, without empty ones.
        id_column: the column with the ids. By default, the first of ``IDS`` that the first row has.
            If it has none, the ids are the positions of the rows.
        empty: "skip" or "error": what to do with rows without text.
        advice: how to name a column, for the message if one is missing.

    Raises:
        InputError: a row has a text that is not a string, or no id; there are no rows; no row has
            text; one of the columns is in no row; or a row has no text and ``empty`` is "error".
    """
    documents: list[TextRow] = []
    skipped: list[str] = []
    # The columns of the first row.
    present: list[str] = []
    # The text columns that no row has had so far.
    absent = set(columns)
    for position, row in enumerate(rows):
        absent.difference_update(row.fields)
        if not present:
            present = list(row.fields)
            id_column = id_column or next((name for name in IDS if name in present), None)
        text = joined_text(row.get(name, str, None) for name in columns if name in row.fields)
        if not text:
            if empty == ERROR:
                raise InputError(f"{row.where} has no text in {', '.join(map(repr, columns))}")
            skipped.append(row.where)
            continue
        id: str | int = position
        if id_column is not None:
            id = row.get(id_column, str, int)
        if id == "":
            raise InputError(f"{row.where} has no id in {id_column!r}")
        documents.append(TextRow(position, row.fields, str(id), text, row.where))
    if documents and not absent:
        return TextRows(documents, id_column, skipped)
    if not documents and not skipped:
        raise without_rows(source)
    names = ", ".join(map(repr, columns))
    problem = f"no text in {names}"
    if absent and present:
        problem = f"no column {min(absent)!r}"
    # Without quotes, a space at the end of a name would be invisible.
    listed = [name if name.strip() == name else repr(name) for name in present]
    end = ""
    if advice and present:
        end = f": {advice}"
    raise InputError(f"{source} has {problem}; its columns are {', '.join(listed) or 'none'}{end}")


def without_rows(source: str) -> InputError:
    """Return the error about a file or dataset without rows."""
    # TREC's and MS MARCO's tables of queries have no header. If there is only one query, its line
    # is read as the header.
    header = ""
    if suffix_of(source) in (".csv", ".tsv"):
        header = ": the first line of a table names its columns"
    return InputError(f"{source} has no rows{header}")


def read_documents(
    rows: Iterable[SourceRow],
    source: str,
    columns: Sequence[str] = ("text",),
    id_column: str | None = None,
) -> tuple[list[Document], list[str]]:
    """Return the documents of ``rows_with_text``, and the places of the rows without text."""
    read = rows_with_text(rows, source, columns, id_column)
    documents = []
    for row in read.rows:
        document = document_of({**row.fields, "text": row.text}, row.id, ["text"])
        if document:
            documents.append(document)
    return documents, read.skipped


def _suffix_of_data(data: bytes, columns: Sequence[str]) -> str:
    """Return the suffix of the format of ``data``. A table's header has one of ``columns``."""
    if data.startswith(b"PAR1"):
        return ".parquet"
    begin = data.lstrip()[:1]
    if begin == b"{":
        return ".jsonl"
    if begin == b"[":
        return ".json"
    header = data.partition(b"\n")[0].decode("utf-8-sig", "replace").rstrip("\r")
    for delimiter, suffix in (("\t", ".tsv"), (_delimiter_of(header), ".csv")):
        cells = next(csv.reader([header], delimiter=delimiter), [])
        if len(cells) > 1 and not set(columns).isdisjoint(cells):
            return suffix
    return ".txt"


def _csv_rows(file: IO[bytes], name: str) -> Iterator[SourceRow]:
    """Yield the rows of a CSV file. The place of a row is the number of its last line."""
    return _table_rows(file, name, _delimiter_of)


def _tsv_rows(file: IO[bytes], name: str) -> Iterator[SourceRow]:
    """Yield the rows of a TSV file. The place of a row is the number of its last line."""
    return _table_rows(file, name, lambda _: "\t")


def _delimiter_of(header: str) -> str:
    """Return the delimiter of a CSV file. In languages with decimal commas, Excel writes ";"."""
    return ";" if ";" in header and "," not in header else ","


def _table_rows(
    file: IO[bytes], name: str, delimiter_of: Callable[[str], str]
) -> Iterator[SourceRow]:
    # Standard input was read into a BytesIO, which has no ``peek``.
    readable: Any = file
    data = io.BufferedReader(readable)
    # Excel's format "Unicode text" is UTF-16.
    encoding = "utf-16" if data.peek(2)[:2] in UTF_16 else "utf-8-sig"
    # A cell in quotes may have line breaks, so the module ``csv`` splits the rows itself.
    with io.TextIOWrapper(data, encoding=encoding, newline="") as lines:
        try:
            header = lines.readline()
        except UnicodeDecodeError as error:
            raise _not_utf8(name, error, 0) from None
        # Cells that are missing at the end of a line are read as empty.
        reader = csv.DictReader(
            chain([header], lines), delimiter=delimiter_of(header), restval="", strict=True
        )
        while fields := _next_row(reader, name):
            if len(fields) < len(reader.fieldnames or ()):
                _check_header(reader.fieldnames or (), name)
            row = SourceRow(fields, f"{name}, line {reader.line_num}")
            if None in fields:
                raise InputError(f"{row.where} has more cells than the header")
            yield row


def _check_header(columns: Sequence[str], name: str) -> None:
    """Raise InputError if two columns have the same name: only the last one would be read."""
    for number, column in enumerate(columns):
        # Excel can write empty cells beside the table, so several columns may have no name.
        if column and column in columns[:number]:
            raise InputError(f"{name} has two columns with the name {column!r}: rename one")


def _not_utf8(name: str, error: UnicodeDecodeError, lines: int) -> InputError:
    """Return the error for a file in another encoding, such as GB 18030 or Windows-1252.

    Args:
        name: the file.
        error: the decoder's error, with the bytes that could not be decoded.
        lines: the number of lines that were decoded before.
    """
    data = bytes(error.object)
    line = lines + data.count(b"\n", 0, error.start) + 1
    return InputError(
        f"cannot read {name}, line {line}: it is not UTF-8 (byte 0x{data[error.start]:02x}). Convert it, such as "
        "by iconv -f ENCODING -t UTF-8"
    )


def _next_row(reader: csv.DictReader[str], name: str) -> dict[str, str] | None:
    """Return the next row of a CSV file, or None after the last.

    Cells may be longer than the limit of the module ``csv``. Other code may rely on that limit, so
    it is raised only during this call.

    Args:
        reader: the reader of the file.
        name: the file, for messages.

    Raises:
        InputError: the quotes of a row are wrong, or the file is not UTF-8.
    """
    limit = csv.field_size_limit(LONGEST_CELL)
    try:
        return next(reader, None)
    except UnicodeDecodeError as error:
        raise _not_utf8(name, error, reader.line_num) from None
    except csv.Error as error:
        raise InputError(f"cannot read {name}, after line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _json_list_rows(file: IO[bytes], name: str) -> Iterator[SourceRow]:
    """Yield the rows of a JSON list, or of an object {id: text}."""
    data = file.read()
    texts: Any = None
    if data.lstrip()[:1] == b"{":
        with suppress(ValueError):
            # For invalid JSON, ``json_list_rows`` below raises the error.
            texts = json_of(data, len(data))
    is_by_id = isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())
    # An object with one of these keys, such as "text", is a single row.
    if not is_by_id or not ROW_KEYS.isdisjoint(texts):
        yield from json_list_rows(data, name)
        return
    for id, text in texts.items():
        yield SourceRow({"id": id, "text": text}, f"{name}, id {id!r:.80}")


def _text_rows(file: IO[bytes], name: str) -> Iterator[SourceRow]:
    """Yield the lines of a text file, which end in \\n, \\r\\n or \\r."""
    text = file.read().decode("utf-8-sig")
    # str.splitlines would also split at form feeds and at U+2028, which ``datasets`` keeps.
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        yield SourceRow({"text": line.removesuffix("\n")}, f"{name}, line {number}")


def _parquet_rows(file: IO[bytes], name: str) -> Iterator[SourceRow]:
    import pyarrow.parquet

    # Some writers add checksums, which Arrow does not compare by default.
    with pyarrow.parquet.ParquetFile(file, page_checksum_verification=True) as table:
        position = 0
        for batch in table.iter_batches(1024):
            for fields in batch.to_pylist():
                yield SourceRow(fields, f"{name}, row {position}")
                position += 1


READERS: dict[str, Callable[[IO[bytes], str], Iterator[SourceRow]]] = {
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
    ".jsonl": json_rows,
    ".json": _json_list_rows,
    ".parquet": _parquet_rows,
    ".txt": _text_rows,
}
