"""The rows of a file of predictions, in any of the usual formats.

A file is JSONL (one object per line), a JSON list of objects, a JSON object {id: answer}, CSV or
TSV with a header, also as spreadsheets write it (semicolons, UTF-16), Parquet, or the folder of a
saved ``datasets.Dataset``. All but the folder can also be compressed with gzip.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from qabench.data.containers import json_columns_of_schema, read_cell
from qabench.data.rows import Row
from qabench.errors import InputError, unreadable
from qabench.io.limits import json_of, numbered_lines
from qabench.io.parquet import parquet_rows

# The maximum decompressed size of a file.
MAX_BYTES = 1 << 28
# Lines are counted first, so that a wrong file is rejected before its rows fill the memory.
MAX_LINES = 1_000_000
# A JSON list or object is parsed as a whole, which takes several times its size in memory.
MAX_LIST_BYTES = 1 << 26
# The header of a table is searched in this part of a file.
MAX_HEADER = 10_000
STDIN = "-"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
# The first bytes of files. UTF-16 is what a spreadsheet writes as "Unicode text".
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
# An Arrow file begins with the format's name, and an Arrow stream, as in a saved ``Dataset``, with
# the second mark.
ARROW = (b"ARROW1", b"\xff\xff\xff\xff")
OTHER_COMPRESSION = {
    b"BZh91AY&SY": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    GZIP: "gzip twice",
}
ZIP = b"PK\x03\x04"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# The folder of a saved ``Dataset`` has this file.
SAVED_DATASET = "state.json"
# The folder of a saved ``DatasetDict`` has this file, with the names of its splits.
SAVED_DATASET_DICT = "dataset_dict.json"


def read_bytes(source: str | Path) -> tuple[bytes, str]:
    """Return the content of a file or of standard input, and its name for messages.

    The content is decompressed, and text is UTF-8 without a byte order mark. A saved ``Dataset``
    becomes Parquet. Raises InputError if the file cannot be read.
    """
    is_stdin = str(source) == STDIN
    name = "standard input" if is_stdin else str(source)
    if is_stdin and sys.stdin is None:
        # Python has no such stream if it was closed before the start (``<&-``).
        raise InputError("cannot read standard input: it is closed")
    if not is_stdin and is_saved_dataset(source):
        if (Path(source) / SAVED_DATASET_DICT).is_file():
            raise InputError(
                f"{source} is a saved DatasetDict; name the folder of one of its splits, such as {source}/test"
            )
        return _saved_dataset(Path(source)), name
    try:
        with nullcontext(sys.stdin.buffer) if is_stdin else Path(source).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if data.startswith(GZIP):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(name, error) from None
    if data.startswith(ARROW):
        raise InputError(
            f"{name} is an Arrow file; save the rows as Parquet (Dataset.to_parquet), or name the whole folder that "
            "Dataset.save_to_disk wrote"
        )
    for beginning, kind in OTHER_COMPRESSION.items():
        if data.startswith(beginning):
            raise InputError(
                f"{name} is compressed with {kind}; decompress it, or compress it with gzip"
            )
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{name} has more than {MAX_BYTES >> 20} MiB, which is the limit for a file"
        )
    if data.startswith(UTF_16):
        try:
            data = data.decode("utf-16").encode()
        except UnicodeError as error:
            raise InputError(f"{name} begins like UTF-16, but is not ({error})") from None
    return data.removeprefix(codecs.BOM_UTF8), name


def is_saved_dataset(path: str | Path) -> bool:
    """Return whether a path is a folder that ``save_to_disk`` wrote.

    It may be the folder of a ``Dataset`` or of a ``DatasetDict``. ``read_bytes`` reads the former,
    and refuses the latter.
    """
    return any((Path(path) / name).is_file() for name in (SAVED_DATASET, SAVED_DATASET_DICT))


def _saved_dataset(folder: Path) -> bytes:
    from datasets import load_from_disk

    content = io.BytesIO()
    try:
        load_from_disk(str(folder)).to_parquet(content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        # ``datasets`` and pyarrow raise these errors for damaged files.
        raise InputError(f"{folder} is not a readable Dataset ({error}); save it again") from None
    return content.getvalue()


def numbered_rows(
    data: bytes, name: str, id_field: str, answer_field: str, field_names: Collection[str]
) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a file with their line numbers, or their positions in a list, from 1.

    A line of JSONL is yielded as bytes, so that one bad line does not stop the others.

    Args:
        data: the content of the file.
        name: the file's name, for messages. Its suffix says whether the file is a table, or else its
            first line does.
        id_field: the field for the keys of a JSON object {id: answer}.
        answer_field: the field for the values of a JSON object {id: answer}.
        field_names: names of fields of a prediction. A JSON object with one of them as a key is
            one prediction, not {id: answer}.

    Raises:
        InputError: the file as a whole cannot be read.
    """
    if data.startswith(ZIP):
        raise InputError(
            f"{name} is a ZIP file, such as a spreadsheet workbook; save the table as CSV (in Excel: CSV UTF-8)"
        )
    first_character = data.lstrip()[:1]
    delimiter = table_delimiter(data, name, field_names)
    if data.startswith(PARQUET):
        yield from enumerate(_parquet_rows(data, name), 1)
        return
    if first_character == b"[":
        try:
            rows = json_of(data, MAX_LIST_BYTES)
        except ValueError as error:
            raise InputError(f"{name} begins like a JSON list, but is not JSON ({error})") from None
        yield from enumerate(rows, 1)
        return
    if delimiter and first_character != b"{":
        yield from _table_rows(data, name, delimiter, field_names)
        return
    if first_character == b"{" and (by_id := _object_by_id(data, name, field_names)):
        for number, (identity, value) in enumerate(by_id.items(), 1):
            fields = value if isinstance(value, dict) else {answer_field: value}
            yield number, {**fields, id_field: identity}
        return
    if data.count(b"\n") > MAX_LINES:
        raise InputError(f"{name} has more than {MAX_LINES:,} lines, which is the limit")
    yield from numbered_lines(data)


def _parquet_rows(data: bytes, name: str) -> Iterator[Row]:
    """Yield the rows of a Parquet file. Columns that are marked as JSON text are parsed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        written = json_columns_of_schema(pq.read_schema(io.BytesIO(data)))
    except (pa.ArrowException, OSError, ValueError):
        # If the file is damaged, reading its rows below raises an error that says what is wrong.
        written = []
    for number, row in enumerate(parquet_rows(io.BytesIO(data), name)):
        for column in written:
            if row[column] is not None:
                row[column] = read_cell(row[column], f"{name}, row {number}, column {column!r}")
        yield row


def _object_by_id(data: bytes, name: str, field_names: Collection[str]) -> Row | None:
    """Return a JSON object {id: answer} or {id: {field: value}}, or None for something else.

    Raises:
        InputError: an id is repeated.
    """
    first_line, _, rest = data.lstrip().partition(b"\n")
    if first_line.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{"):
        # This is JSONL. Within one object, there would be a comma between the two braces.
        return None
    try:
        by_id = json_of(data, MAX_LIST_BYTES)
    except ValueError:
        # JSONL with several lines, or a damaged file. If it is damaged, reading its lines raises an
        # error that says where.
        return None
    if not isinstance(by_id, dict):
        return None
    if any(key.lower() in field_names for key in by_id):
        return None
    # A dict keeps only the last value of a repeated key, so repeated keys are searched in a list.
    pairs = json.loads(data, object_pairs_hook=list)
    keys = [key for key, _ in pairs]
    if len(keys) > len(by_id):
        repeated, _ = Counter(keys).most_common(1)[0]
        raise InputError(f"{name} has the id {repeated!r:.80} twice; keep one of its answers")
    return by_id


def _table_rows(
    data: bytes, name: str, usual_delimiter: str, field_names: Collection[str]
) -> Iterator[tuple[int, Row]]:
    """Yield each row of a CSV or TSV file with the number of its last line.

    Raises:
        InputError: the file is not such a table, or has two columns with one of ``field_names``.
    """
    # The csv module's limit on the length of cells is for the whole process, so it is restored
    # below.
    limit = csv.field_size_limit(MAX_BYTES)
    line = 0
    has_ended = False

    def lines(content: str) -> Iterator[str]:
        nonlocal has_ended
        yield from io.StringIO(content, newline="")
        has_ended = True

    try:
        content = data.decode("utf-8-sig")
        skipped = 0
        delimiter = _delimiter(content.partition("\n")[0], usual_delimiter)
        if content[:4].lower() == "sep=":
            # This line names the delimiter for Excel.
            delimiter = content[4:5]
            content = content.partition("\n")[2]
            skipped = 1
        reader = csv.DictReader(lines(content), delimiter=delimiter)
        _check_unique(reader.fieldnames or (), field_names, name)
        line = reader.line_num + skipped
        for row in reader:
            if has_ended:
                # The reader asks for a line after the last one only if a quote is still open. Its
                # cell then has all lines that follow.
                raise InputError(
                    f"{name}, line {line + 1}: a cell begins with a quote that is not closed until the end of the file"
                )
            line = reader.line_num + skipped
            if None in row:
                raise InputError(
                    f"{name}, line {line} has more cells than the header; put quotes around cells that contain "
                    f"{delimiter!r}"
                )
            yield line, row
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}, after line {line}: {error}; save the table as UTF-8 (in Excel: CSV UTF-8)"
        ) from None
    except (csv.Error, TypeError) as error:
        # csv raises TypeError for an invalid delimiter.
        raise InputError(f"{name}, after line {line}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _check_unique(columns: Iterable[str], field_names: Collection[str], name: str) -> None:
    """Raise InputError if a table has two columns with the same name, one of ``field_names``."""
    for column, count in Counter(columns).items():
        is_read = column in field_names or column.strip().lower() in field_names
        if count > 1 and is_read:
            raise InputError(
                f"{name} has {count} columns {column!r}; rename or remove all but one of them"
            )


def table_delimiter(data: bytes, name: str, field_names: Collection[str]) -> str | None:
    """Return the usual delimiter of a CSV or TSV file, or None if the file is not such a table.

    The suffix of the name decides. With another suffix or none, as for standard input and pipes, a
    table is text whose first line names the delimiter (``sep=;``), or is a header with at least two
    of ``field_names``.
    """
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix in DELIMITERS:
        return DELIMITERS[suffix]
    header = data[:MAX_HEADER].partition(b"\n")[0].decode("utf-8", "replace")
    delimiter = _delimiter(header, ",")
    if header[:4].lower() == "sep=":
        return delimiter
    names = {name.strip().strip('"').strip().lower() for name in header.split(delimiter)}
    if len(names.intersection(map(str.lower, field_names))) < 2:
        return None
    return delimiter


def _delimiter(header: str, usual: str) -> str:
    """Find a table's delimiter in its header. Spreadsheets also write semicolons or tabs."""
    for delimiter in (usual, ";", "\t", ","):
        if delimiter in header:
            return delimiter
    return usual
