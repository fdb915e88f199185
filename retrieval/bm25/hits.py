"""The result of a search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from qabench.io.tables import Displayed, Table

HITS_SHOWN = 10  # by print and in notebooks


@dataclass(frozen=True, slots=True, repr=False)
class Hits(Displayed):
    """The result of one query, the best document first. Iterating gives (position, score) pairs.

    Attributes:
        positions: positions of documents in the index.
        scores: their scores.
    """

    positions: list[int]
    scores: list[float]

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.positions, self.scores, strict=True)

    def tables(self) -> list[Table]:
        """The best documents, as ``print`` and notebooks show them."""
        first = islice(enumerate(self, 1), HITS_SHOWN)
        rows: list[list[Any]] = [[rank, position, f"{score:.4f}"] for rank, (position, score) in first]
        more = [f"and {len(self) - HITS_SHOWN:,} more"] if len(self) > HITS_SHOWN else []
        return [Table(f"{len(self):,} hits", ["rank", "position", "score"], rows, more)]
