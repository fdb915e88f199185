"""A split of a dataset as a corpus: from the Hub, from a folder, or from the cache of ``datasets``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.arrays import Array

PREFIX = "dataset:"
ROWS_PER_READ = 1024


@dataclass(frozen=True)
class CorpusDataset:
    """A split of a dataset with one document per row. Rows are read from Arrow files, not kept in memory.

    Attributes:
        source: the dataset's name, config and split, as ``index.json`` holds them.
        column: the column with the text.
        size: the number of documents.
        rows: the ``datasets.Dataset``.
        stamp: the number of rows and the fingerprint of ``datasets``, to detect changes.
        offsets: unused; empty.
    """

    source: str
    column: str
    size: int
    rows: Any
    stamp: tuple[int, str]
    offsets: Array

    @classmethod
    def open(cls, name: str, config: str | None, split: str, column: str) -> CorpusDataset:
        """Loads a split by ``datasets.load_dataset``.

        Args:
            name: a dataset on the Hub, such as "ORG/NAME", or a folder with data files.
            config: its config; None for the default one.
            split: a split, or a slice of one such as "train[:1000]".
            column: the column with the text.

        Raises:
            InputError: the dataset cannot be loaded, is empty, or has no such column of strings.
        """
        from datasets import load_dataset
        from datasets.exceptions import DatasetGenerationError

        try:
            rows = load_dataset(name, config, split=split)
        except (OSError, ValueError, DatasetGenerationError) as error:
            raise InputError(f"cannot load the dataset {name}: {error}") from None
        return cls.of(rows, column, f"{name}|{config or ''}|{split}")

    @classmethod
    def of(cls, rows: Any, column: str, name: str = "(in memory)||") -> CorpusDataset:
        """A ``datasets.Dataset``. Raises InputError if it is empty or has no such column."""
        if column not in rows.column_names:
            raise InputError(f"{name} has no column {column!r}; the columns are {', '.join(rows.column_names)}")
        if not len(rows):
            raise InputError(f"{name} has no documents")
        source = f"{PREFIX}{name}"
        stamp = (len(rows), str(rows._fingerprint))  # the only identity of its content that datasets offers
        return cls(source, column, len(rows), rows.select_columns([column]), stamp, np.empty(0, dtype=np.int64))

    @classmethod
    def reopen(cls, source: str, column: str) -> CorpusDataset:
        """The corpus that ``source`` of another ``CorpusDataset`` names. Raises InputError as ``open`` does."""
        name, config, split = source.removeprefix(PREFIX).rsplit("|", 2)
        return cls.open(name, config or None, split, column)

    def texts(self, start: int, end: int) -> Iterator[str]:
        """The documents from ``start`` (included) to ``end`` (excluded). Raises InputError for one without text."""
        for first in range(start, end, ROWS_PER_READ):
            part = self.rows[first : min(first + ROWS_PER_READ, end)][self.column]
            for number, text in enumerate(part, first):
                if not isinstance(text, str):
                    raise InputError(f"{self.source}: document {number} has no text in {self.column!r}: {text!r:.60}")
                yield text
