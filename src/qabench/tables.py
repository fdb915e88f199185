"""Small tables of figures, as the statistics of a benchmark are given: plain data, printed by the command line."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """A table of figures.

    Attributes:
        title: what is counted.
        columns: the columns' names; the first names the rows.
        rows: a list of cells a row: texts, numbers, or None for "no figure".
        notes: sentences that explain a figure, above all one that differs from the published one.
    """

    title: str
    columns: list[str]
    rows: list[list[Any]]
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The table as JSON data."""
        return asdict(self)
