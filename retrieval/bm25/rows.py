"""Read the documents of an index: strings, datasets, frames, and any rows, in blocks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash

from qabench.data.arguments import checked_string
from qabench.data.containers import is_iterable
from qabench.errors import InputError, unknown_name
from qabench.retrieval.bm25.search import Array

Row = tuple[str, tuple[str, ...], str]
"""A document: its text, its filter values as JSON, and its id ("" if the index has no ids)."""

SKIP, ERROR, INDEX = "skip", "error", "index"
EMPTY = (SKIP, ERROR, INDEX)
# Reading a dataset row by row is slow, and reading all of it takes too much memory.
ROWS_A_READ = 256
# A block of rows is tokenized at once. It ends when it reaches one of these limits.
ROWS_A_BLOCK = 8192
CHARACTERS_A_BLOCK = 4_000_000


@dataclass(frozen=True)
class Source:
    """Documents to index.

    Attributes:
        data: strings, or a dataset. May be an iterator.
        columns: the text columns of the dataset. None for strings.
        filters: the filter columns.
        ids: the column with the ids, or None.
        empty: what is done with rows without text, one of ``EMPTY``. If the documents are strings,
            empty ones are always indexed.
    """

    data: Any
    columns: list[str] | None = None
    filters: tuple[str, ...] = ()
    ids: str | None = None
    empty: str = SKIP

    @property
    def fingerprint(self) -> str | None:
        """Return a dataset's fingerprint, which identifies its content. None for other sources."""
        return getattr(self.data, "_fingerprint", None) if self.columns else None

    def blocks(self) -> Iterator[list[Row | None]]:
        """Yield rows in blocks of up to 8,192 rows or about four million characters. Skipped rows are None."""
        block: list[Row | None] = []
        characters = 0
        for row in self._rows():
            block.append(row)
            characters += len(row[0]) if row else 0
            if characters >= CHARACTERS_A_BLOCK or len(block) >= ROWS_A_BLOCK:
                yield block
                block = []
                characters = 0
        if block:
            yield block

    def digests(self) -> tuple[Array, Array, int]:
        """Return each document's digest (uint64) and position, and the number of rows."""
        digests = [np.empty(0, dtype=np.uint64)]
        has_document = [np.empty(0, dtype=bool)]
        for block in self.blocks():
            digests.append(digests_of([row for row in block if row is not None]))
            has_document.append(np.array([row is not None for row in block]))
        row_has_document = np.concatenate(has_document)
        positions = np.flatnonzero(row_has_document)
        return np.concatenate(digests), positions, len(row_has_document)

    def _rows(self) -> Iterator[Row | None]:
        if self.columns is None:
            for text in checked_strings(self.data, "document"):
                yield text, (), ""
            return
        names = [*self.columns, *self.filters]
        if self.ids:
            names.append(self.ids)
        position = 0
        for batch in _batches(self.data, names):
            _check_columns(f"row {position}", batch, names)
            columns = [batch[name] for name in names]
            for row in zip(*columns, strict=True):
                yield self._row(row, f"row {position}")
                position += 1

    def _row(self, values: Sequence[Any], where: str) -> Row | None:
        """Return a row from the values of its text columns, filters and id, or None to skip it."""
        columns = self.columns or []
        last = len(columns) + len(self.filters)
        texts = values[: len(columns)]
        for name, text in zip(columns, texts, strict=True):
            if not (isinstance(text, str) or is_missing(text)):
                raise InputError(
                    f"{where} has {text!r:.60} in {name!r}; expected a string{_hint(text)}"
                )
        document = joined_text(texts)
        if not document and self.empty != INDEX:
            if self.empty == ERROR:
                raise InputError(
                    f"{where} has no text in {', '.join(columns)}; empty='skip' leaves such rows out"
                )
            return None
        codes = [as_json(value, where) for value in values[len(columns) : last]]
        id = checked_id(values[-1], f"{where} has no id in {self.ids!r}") if self.ids else ""
        return document, tuple(codes), id


def joined_text(texts: Iterable[Any]) -> str:
    """Return the texts that are not blank, joined by a newline."""
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())


def is_missing(value: object) -> bool:
    """Tell whether a cell has no value: None, NaN, or the NA or NaT of pandas."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def checked_id(value: object, problem: str) -> str:
    """Return an id as a string. Raises InputError unless it is a string or an integer."""
    if isinstance(value, np.integer):
        value = int(value)
    if value is None or value == "" or isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{problem}: expected a string or an integer, not {value!r:.60}")
    return str(value)


def checked_empty(empty: object) -> str:
    """Return ``empty``, the rule for rows without text. Raises InputError if it is unknown."""
    if checked_string(empty, "empty") not in EMPTY:
        raise unknown_name("unknown value of empty=", str(empty), EMPTY)
    return str(empty)


def checked_columns(name: str, value: object) -> list[str]:
    """Return one or several column names as a list. Raises InputError if one is not a string."""
    columns: list[Any] = [value]
    if isinstance(value, list | tuple):
        columns = list(value)
    if not all(isinstance(column, str) for column in columns):
        raise InputError(
            f"{name} is {value!r:.60}; expected the name of a column, or a list of names"
        )
    if len(set(columns)) < len(columns):
        raise InputError(f"{name} is {value!r:.60}, which names a column twice")
    return columns


def digests_of(block: Sequence[Row]) -> Array:
    """Return a digest of each row."""
    digests = np.empty(len(block), dtype=np.uint64)
    for row, (text, values, id) in enumerate(block):
        parts = (*values, id, text) if id else (*values, text)
        # Filter values are JSON, which has no NUL character, so different values give different
        # bytes.
        data = "\0".join(parts).encode("utf-8", "surrogatepass")
        digests[row] = xxhash.xxh3_64_intdigest(data)
    return digests


def checked_strings(texts: Iterable[str], name: str) -> Iterator[str]:
    """Yield documents or queries.

    Args:
        texts: the documents or queries.
        name: "document" or "query", for messages.

    Raises:
        InputError: an item is not a string, or ``texts`` is a single string, a mapping, a set or a
            frame, or cannot be iterated over.
    """
    if isinstance(texts, str):
        raise InputError("expected a list of strings, got a single string: put it in a list")
    expected = f"expected a list of strings, the {_plural(name)}"
    if isinstance(texts, Mapping | Set) or _frame_columns(texts) is not None:
        hint = ""
        if name == "document":
            hint = ". For columns of a dataset or frame: BM25Index.from_dataset"
        raise InputError(f"{expected}, got a {type(texts).__name__}{hint}")
    _refuse(texts, expected)
    for position, text in enumerate(texts):
        if hasattr(text, "as_py"):
            # Items of an Arrow array are scalars.
            text = text.as_py()
        if not isinstance(text, str):
            raise InputError(f"{name} {position} is {text!r:.60}; expected a string{_hint(text)}")
        yield text


def as_json(value: Any, where: str) -> str:
    """Return a filter value as JSON, which distinguishes 1, 1.0, true and "1".

    Raises:
        InputError: the value is not a string, a number, a boolean or None.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False)
    raise InputError(
        f"{where}: cannot filter by {value!r:.60}; allowed: strings, numbers, booleans and null"
    )


def rows_of(dataset: Any) -> Any:
    """Return ``dataset`` if its rows can be read. A lazy polars frame is collected.

    Raises:
        InputError: ``dataset`` is not a dataset, an Arrow table, a frame or an iterable of rows.
    """
    if type(dataset).__name__ in ("DatasetDict", "IterableDatasetDict"):
        splits = ", ".join(map(str, dataset))
        raise InputError(
            f"the dataset is a {type(dataset).__name__} with the splits {splits}: choose one, such as "
            f"dataset[{next(iter(dataset), 'train')!r}]"
        )
    if type(dataset).__name__ == "LazyFrame":
        return dataset.collect()
    if isinstance(dataset, str | bytes | Mapping | Set):
        raise InputError(
            f"the dataset is {dataset!r:.60}; expected a datasets.Dataset, a frame, or a list of rows"
        )
    _refuse(dataset, "expected a datasets.Dataset, a frame, or an iterable of rows")
    return dataset


def _refuse(data: Any, expected: str) -> None:
    """Raise InputError if data is not iterable."""
    if not is_iterable(data) and _frame_columns(data) is None:
        raise InputError(f"{expected}, got {data!r:.60}")


def _plural(name: str) -> str:
    return "queries" if name == "query" else f"{name}s"


def _hint(text: object) -> str:
    """Return advice if ``text`` is a list of terms, which other packages take as a document, else ""."""
    if isinstance(text, list | tuple) and text and all(isinstance(term, str) for term in text):
        return ". For lists of terms: join them by spaces, and pass tokenizer=str.split"
    return ""


def _batches(dataset: Any, names: list[str]) -> Iterator[Mapping[str, Sequence[Any]]]:
    """Yield batches of rows. Each maps a column to the values of the rows."""
    if hasattr(dataset, "iter"):
        # A ``Dataset`` has the attribute ``data``, but an ``IterableDataset`` does not.
        if hasattr(dataset, "data"):
            # Read only these columns, and as Python values, whatever format the user has set.
            _check_columns("the dataset", dataset.column_names, names)
            dataset = dataset.select_columns(sorted(set(names))).with_format(None)
        yield from dataset.iter(ROWS_A_READ)
        return
    if (columns := _frame_columns(dataset)) is not None:
        _check_columns("the frame", columns, names)
        yield {name: _cells(dataset[name]) for name in names}
        return
    for position, row in enumerate(dataset):
        if not isinstance(row, Mapping):
            expected = ", ".join(names)
            raise InputError(
                f"row {position} is {row!r:.60}; expected a dict with the columns {expected}"
            )
        yield {name: [value] for name, value in row.items()}


def _frame_columns(data: Any) -> list[str] | None:
    """Return the column names of a frame or an Arrow table, or None for other types."""
    if hasattr(data, "column_names") and hasattr(data, "to_pylist"):
        # This is an Arrow table.
        return list(data.column_names)
    if hasattr(data, "columns") and hasattr(data, "shape"):
        # This is a pandas or polars frame.
        return list(map(str, data.columns))
    return None


def _cells(column: Any) -> list[Any]:
    """Return the values of a column of a frame or Arrow table."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _check_columns(where: str, columns: Iterable[str], names: list[str]) -> None:
    """Check that all names are columns.

    Args:
        where: the row or dataset, for messages.
        columns: the columns that the row or dataset has.
        names: the columns that the index needs.

    Raises:
        InputError: a column is missing.
    """
    if missing := [name for name in names if name not in columns]:
        raise InputError(f"{where} has no {missing[0]!r}; the columns are {', '.join(columns)}")
