"""Reads documents in blocks from lists, generators, datasets and streams; fingerprints and row filters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.search import Array, Mask

Row = tuple[str, tuple[str, ...]]

ROWS_A_READ = 256
ROWS_A_BLOCK = 8192
CHARACTERS_A_BLOCK = 1_000_000


@dataclass(frozen=True)
class Source:
    """Documents to index, and their origin.

    Attributes:
        rows: documents and filter values; can be read once.
        columns: the text columns of the dataset; None for strings that are not from a dataset.
        filters: the filter columns.
        cache_key: the fingerprint of the content in ``datasets``, if there is one.
    """

    rows: Iterable[Row]
    columns: list[str] | None = None
    filters: tuple[str, ...] = ()
    cache_key: str | None = None

    @classmethod
    def of_dataset(cls, dataset: Any, columns: str | Sequence[str], filters: str | Sequence[str] = ()) -> Source:
        """Return the documents of a dataset; see ``rows_of_dataset``."""
        columns = [columns] if isinstance(columns, str) else list(columns)
        filters = (filters,) if isinstance(filters, str) else tuple(filters)
        if not columns:
            raise InputError("columns is empty; name at least one text column")
        cache_key = getattr(dataset, "_fingerprint", None)
        return cls(rows_of_dataset(dataset, columns, filters), columns, filters, cache_key)


def rows_of_texts(texts: Iterable[str]) -> Iterator[Row]:
    """Yield strings as rows without filter values. Raises InputError for anything that is not a string."""
    if isinstance(texts, str):
        raise InputError("expected a list of strings, got a single string: put it in a list")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"document {position} is {text!r:.60}; expected a string")
        yield text, ()


def rows_of_dataset(dataset: Any, columns: Sequence[str], filters: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the text of each row, columns joined by a newline, and the values of its filter columns as JSON."""
    position = 0
    for batch in _batches(dataset, [*columns, *filters]):
        for name in (*columns, *filters):
            if name not in batch:
                raise InputError(_no_text(position, columns if name in columns else [name], batch))
        texts = list(zip(*(batch[name] for name in columns), strict=True))
        values = zip(*(batch[name] for name in filters), strict=True) if filters else [()] * len(texts)
        for parts, row in zip(texts, values, strict=True):
            if not all(isinstance(part, str) for part in parts):
                raise InputError(_no_text(position, columns, batch))
            yield "\n".join(parts), tuple(as_json(value, f"row {position}") for value in row)
            position += 1


def _batches(dataset: Any, names: list[str]) -> Iterator[Mapping[str, list[Any]]]:
    columns = getattr(dataset, "column_names", None)
    if isinstance(columns, list) and not set(names) <= set(columns):
        missing = next(name for name in names if name not in columns)
        raise InputError(f"the dataset has no column {missing!r}; the columns are {', '.join(columns)}")
    if not hasattr(dataset, "iter"):
        for position, row in enumerate(dataset):
            if not isinstance(row, Mapping):
                raise InputError(f"row {position} is {row!r:.60}; expected a dict with the columns {', '.join(names)}")
            yield {name: [value] for name, value in row.items()}
    elif hasattr(dataset, "data"):  # an Arrow table: reads only these columns, in any format that the user has set
        for table in dataset.select_columns(list(dict.fromkeys(names))).with_format("arrow").iter(ROWS_A_READ):
            yield {name: table.column(name).to_pylist() for name in table.column_names}
    else:
        yield from dataset.iter(ROWS_A_READ)


def _no_text(position: int, columns: Sequence[str], batch: Mapping[str, Any]) -> str:
    return f"row {position} has no text in {', '.join(columns)}; the columns are {', '.join(batch)}"


def as_json(value: Any, where: str) -> str:
    """Return a filter value as JSON, which distinguishes 1, 1.0, true and "1". Raises InputError for other types."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False)
    raise InputError(f"{where}: cannot filter by {value!r:.60}; allowed: strings, numbers, booleans and null")


def blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows in blocks of about a million characters, which limits the memory for streams."""
    block: list[Row] = []
    characters = 0
    for row in rows:
        block.append(row)
        characters += len(row[0])
        if characters >= CHARACTERS_A_BLOCK or len(block) >= ROWS_A_BLOCK:
            yield block
            block, characters = [], 0
    if block:
        yield block


class Fingerprint:
    """A digest of documents and filter values in order; it does not depend on how they are split into blocks."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()

    def add(self, block: Sequence[Row]) -> None:
        """Add rows."""
        self.size += len(block)
        parts: list[bytes] = []
        for text, values in block:
            for part in (text, *values):
                data = part.encode("utf-8", "surrogatepass")
                parts += (len(data).to_bytes(8, "little"), data)
        self._digest.update(b"".join(parts))

    def hexdigest(self) -> str:
        """Return the digest of all rows so far."""
        return self._digest.hexdigest()


@dataclass
class Filters:
    """The values of the filter columns, by column.

    Attributes:
        values: the distinct values, as JSON, in the order of first occurrence.
        codes: each document's value, as a number into ``values``; int32.
    """

    values: dict[str, list[str]] = field(default_factory=dict)
    codes: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Filters:
        """Return the filters from rows with one value per column."""
        filters = cls()
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            numbers: dict[str, int] = {}
            codes = [numbers.setdefault(value, len(numbers)) for value in values]
            filters.values[column] = list(numbers)
            filters.codes[column] = np.array(codes, dtype=np.int32)
        return filters

    def mask(self, where: Mapping[str, Any]) -> Mask:
        """Return the documents with these values in all of these columns."""
        masks = [self._column_mask(column, allowed) for column, allowed in where.items()]
        if not masks:
            raise InputError("where is empty; it names columns and values, such as {'chapter': 1}")
        mask: Mask = np.logical_and.reduce(masks)
        return mask

    def _column_mask(self, column: str, allowed: Any) -> Mask:
        if column not in self.codes:
            names = ", ".join(self.codes) or "none"
            raise InputError(
                f"{column!r} is not a filter of the index; its filters are: {names} (set by filters=[...])"
            )
        values = self.values[column]
        codes = []
        for value in allowed if isinstance(allowed, list | tuple | set | frozenset) else [allowed]:
            text = as_json(value, f"where, column {column!r}")
            if text not in values:
                examples = ", ".join(values[:10]) + (", ..." if len(values) > 10 else "")
                raise InputError(f"no document has {text} in {column!r}; the values are {examples}")
            codes.append(values.index(text))
        return np.isin(self.codes[column], codes)
