"""Tables as plain data, such as the statistics of a benchmark; the command line prints them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        title: what the table shows.
        columns: the names of the columns; the first column names the rows.
        rows: one list of cells per row: strings, numbers, or None for an empty cell.
        notes: sentences that explain values, such as those that differ from the published ones.
    """

    title: str
    columns: list[str]
    rows: list[list[Any]]
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The table as JSON data."""
        return asdict(self)
