"""Read the documents of a corpus: files and datasets with one document per row."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from qabench.data.rows import SourceRow, read_json_lines, read_json_list
from qabench.errors import InputError
from qabench.io.tables import one_line
from qabench.retrieval.documents import Document, document_of

# Columns with ids. The first that exists is used.
IDS = ("id", "docno", "doc_id", "docid", "_id")
LONGEST_CELL = 2**31 - 1  # characters of a CSV file's cell. The csv module's default is 131,072.


def read_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a file. All cells of a CSV file are strings.

    Raises InputError: the file cannot be read, or has another format.
    """
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise InputError(f"{path} has an unknown format; allowed: {', '.join(READERS)}")
    try:
        yield from READERS[suffix](path)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {one_line(error):.300}") from None


def read_documents(
    rows: Iterable[SourceRow],
    source: str,
    columns: Sequence[str] = ("text",),
    id_column: str | None = None,
) -> tuple[list[Document], list[str]]:
    """Return the documents in rows, and the places of rows without text, which are skipped.

    Args:
        rows: the rows.
        source: the name of the file or dataset, for messages.
        columns: the columns with text. Several are joined by a newline, without those that are empty.
        id_column: the column with the ids. By default, it is the first of ``IDS`` in the first row,
            or if there is none, ids are the positions of rows.

    Raises:
        InputError: a row has a text that is not a string, or no id. Or no row has text.
    """
    documents: list[Document] = []
    skipped: list[str] = []
    present: list[str] = []  # columns of the first row
    for position, row in enumerate(rows):
        if not present:
            present = list(row.fields)
            id_column = id_column or next((name for name in IDS if name in present), None)
        texts = [row.get(name, str, None) for name in columns if name in row.fields]
        text = "\n".join(text for text in texts if text and text.strip())
        if not text:
            skipped.append(row.where)
            continue
        id = position if id_column is None else row.get(id_column, str, int)
        if id == "":
            raise InputError(f"{row.where} has no id in {id_column!r}")
        document = document_of({**row.fields, "text": text}, str(id), ["text"])
        if document:
            documents.append(document)
    if not documents:
        raise InputError(
            f"{source} has no text in {', '.join(map(repr, columns))}; its columns are "
            f"{', '.join(present) or 'none'}"
        )
    return documents, skipped


def _csv_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a CSV file, each with its last line."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter=delimiter, restval="", strict=True)
        while fields := _next_row(reader, path):
            row = SourceRow(fields, f"{path}, line {reader.line_num}")
            if None in fields:
                raise InputError(f"{row.where} has more cells than the header")
            yield row


def _next_row(reader: csv.DictReader[str], path: Path) -> dict[str, str] | None:
    """Return the next row of a CSV file, or None after the last.

    Cells may be longer than the limit of the module ``csv``, which other code may rely on: it is
    lifted only here.

    Args:
        reader: the reader of the file.
        path: the file, for messages.

    Raises:
        InputError: the quotes of a row are wrong, or it is not UTF-8.
    """
    limit = csv.field_size_limit(LONGEST_CELL)
    try:
        return next(reader, None)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}, after line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _text_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the lines of a text file that are not blank, with their numbers from 0 as ids."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    for position, line in enumerate(lines):
        if line.strip():
            yield SourceRow({"id": position, "text": line}, f"{path}, line {position + 1}")


def _parquet_rows(path: Path) -> Iterator[SourceRow]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        position = 0
        for batch in file.iter_batches(1024):
            for fields in batch.to_pylist():
                yield SourceRow(fields, f"{path}, row {position}")
                position += 1


READERS = {
    ".csv": _csv_rows,
    ".tsv": _csv_rows,
    ".jsonl": read_json_lines,
    ".json": read_json_list,
    ".parquet": _parquet_rows,
    ".txt": _text_rows,
}
