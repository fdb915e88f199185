"""Read Parquet files from outside, with a limit on their size in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from qabench.errors import InputError
from qabench.io.limits import MAX_DEPTH

# The maximum unpacked size in bytes, of the whole file by its metadata, and of the columns that are
# read.
MAX_BYTES = 1 << 30
# Metadata is checked against these limits before any row is unpacked.
MAX_ROWS = 2_000_000
# Batches are small, because a single row can contain a whole document.
_BATCH_ROWS = 100


def parquet_rows(
    source: Path | IO[bytes], name: str, columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, with the given columns only.

    In a file of a few kilobytes, dictionary encoding can repeat a value until it fills gigabytes.
    So texts stay dictionary-encoded until the size of their batch of rows is known.

    Args:
        source: a path or an open file.
        name: the file's name, for errors.
        columns: the columns that the file must have. None means all columns of the file.

    Raises:
        InputError: the file cannot be read, lacks a column, or is too large or too deep.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(source)
        metadata = file.metadata
        there = set(file.schema_arrow.names)
        columns = file.schema_arrow.names if columns is None else columns
        lacking = [column for column in columns if column not in there]
        if lacking:
            raise InputError(
                f"{name} has no column {lacking[0]!r}; it must have {', '.join(columns)}"
            )
        # The metadata of each column in a row group would say more, but pyarrow crashes if a
        # damaged file lacks it.
        size = 0
        for number in range(metadata.num_row_groups):
            size += metadata.row_group(number).total_byte_size
        texts = []
        for number in range(metadata.num_columns):
            leaf = metadata.schema.column(number)
            if leaf.path.split(".")[0] not in columns:
                continue
            if leaf.path.count(".") > MAX_DEPTH:
                raise InputError(f"{name} is nested deeper than {MAX_DEPTH} levels")
            # Unlike strings, values of a fixed length are unpacked in full, without a dictionary.
            size += metadata.num_rows * max(0, leaf.length)
            if leaf.physical_type == "BYTE_ARRAY":
                texts.append(leaf.path)
        if size > MAX_BYTES or metadata.num_rows > MAX_ROWS:
            raise InputError(
                f"{name} has {metadata.num_rows:,} rows and {size:,} bytes, {_allowed()}"
            )
        file = pq.ParquetFile(source, read_dictionary=texts)
        expanded = 0
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns)):
            expanded += sum(map(_expanded_size, batch.columns))
            if expanded > MAX_BYTES:
                raise InputError(f"{name} expands to more than {expanded:,} bytes, {_allowed()}")
            yield from batch.to_pylist()
    except InputError:
        raise
    # Damaged files cause all of these exceptions. UnicodeDecodeError and most Arrow errors are
    # ValueErrors.
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, RecursionError) as error:
        raise InputError(f"cannot read {name}: {' '.join(str(error).split()):.200}") from None


def _allowed() -> str:
    return f"more than the {MAX_ROWS:,} rows and {MAX_BYTES:,} bytes that are allowed"


def _expanded_size(array: Any) -> int:
    """Return the size of an array in bytes without dictionary encoding."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(map(_expanded_size, array.flatten()))
    if pa.types.is_map(kind):
        return _expanded_size(array.keys) + _expanded_size(array.items)
    # Structs and maps are nested, too, but were handled above. Only kinds of lists remain.
    if pa.types.is_nested(kind):
        return _expanded_size(array.flatten())
    return int(array.nbytes)
