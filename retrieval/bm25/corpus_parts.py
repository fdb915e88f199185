"""A corpus of many Parquet files in a folder, each with the next documents and what is known about them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.arrays import Array
from qabench.retrieval.bm25.corpus_file import opened_parquet, parquet_rows

PREFIX = "parts:"
PATTERN = "part-*.parquet"


@dataclass(frozen=True)
class CorpusParts:
    """The files ``part-*.parquet`` of a folder inside the folder of an index, which can be moved together.

    Attributes:
        folder: the folder with the files.
        column: the column with the text.
        size: the number of documents.
        offsets: the number of the first document of each file.
        stamp: the number of files and of documents, to detect changes.
    """

    folder: Path
    column: str
    size: int
    offsets: Array
    stamp: tuple[int, int]

    @classmethod
    def open(cls, folder: Path, column: str) -> CorpusParts:
        """Opens the files and counts their documents.

        Raises:
            InputError: there are no files, no documents, or a file is damaged or does not have the column.
        """
        counts = []
        for path in _paths(folder):
            with opened_parquet(path) as file:
                if column not in file.schema_arrow.names:
                    raise InputError(
                        f"{path} has no column {column!r}; the columns are {', '.join(file.schema_arrow.names)}"
                    )
                counts.append(int(file.metadata.num_rows))
        if not sum(counts):
            raise InputError(f"{folder} has no documents")
        starts = np.cumsum([0, *counts], dtype=np.int64)
        return cls(folder, column, int(starts[-1]), starts[:-1], (len(counts), int(starts[-1])))

    @functools.cached_property
    def _paths(self) -> list[Path]:
        return _paths(self.folder)

    @property
    def source(self) -> str:
        """The folder's name, as ``index.json`` holds it."""
        return f"{PREFIX}{self.folder.name}"

    @classmethod
    def reopen(cls, index: Path, source: str, column: str) -> CorpusParts:
        """The corpus that ``source`` names in the folder of an index. Raises InputError as ``open`` does."""
        return cls.open(index / Path(source.removeprefix(PREFIX)).name, column)

    def texts(self, start: int, end: int) -> Iterator[str]:
        """The documents from ``start`` (included) to ``end`` (excluded)."""
        yield from (row[self.column] for row in self._rows(start, end, [self.column]))

    def rows(self, positions: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
        """The values of columns for documents."""
        return [next(self._rows(position, position + 1, columns)) for position in positions]

    def _rows(self, start: int, end: int, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        paths = self._paths
        part = int(np.searchsorted(self.offsets, start, side="right")) - 1
        while part < len(paths) and self.offsets[part] < end:
            first = int(self.offsets[part])
            yield from parquet_rows(paths[part], columns, max(start - first, 0), end - first)
            part += 1


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob(PATTERN))
