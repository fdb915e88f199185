"""Tables as plain data, and how objects show themselves as tables in terminals, notebooks and documents."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

FORMATS = {"markdown": "github", "latex": "latex_booktabs"}  # by tabulate's names
_STYLE = "text-align:{}; vertical-align:top"


def flattened(value: Mapping[str, Any], between: str = ".", before: str = "") -> Iterator[tuple[str, Any]]:
    """(name, value) of each value that is not a dict; one in a nested dict has a name such as "acc.loose"."""
    for name, part in value.items():
        if isinstance(part, dict):
            yield from flattened(part, between, f"{before}{name}{between}")
        else:
            yield f"{before}{name}", part


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
        """Return the table as JSON data."""
        return asdict(self)

    def formatted(self, format: str) -> str:
        """Return the table as "csv", "markdown" or "latex"; cells are unchanged, so numbers are never cut."""
        if format == "csv":
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
            return text.getvalue()
        from tabulate import tabulate

        rows = self._cells()
        if format == "markdown":
            rows = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
        body = tabulate(rows, self.columns, tablefmt=FORMATS[format], disable_numparse=True)
        title = f"**{self.title}**\n\n" if format == "markdown" else f"% {self.title}\n"
        notes = "".join(f"\n{'' if format == 'markdown' else '% '}{note}\n" for note in self.notes)
        return f"{title}{body}\n{notes}"

    def text(self) -> str:
        """Return the table as text, for ``print``."""
        from tabulate import tabulate

        align = ["left", *("right" if self._is_numeric(i) else "left" for i in range(1, len(self.columns)))]
        body = tabulate(self._cells(), self.columns, tablefmt="simple", disable_numparse=True, colalign=align)
        return "\n".join([self.title, *([body] if self.rows else []), *(f"  {note}" for note in self.notes)])

    def html(self) -> str:
        """Return the table as HTML, for notebooks; everything in it is escaped."""
        aligned = ["right" if i and self._is_numeric(i) else "left" for i in range(len(self.columns))]
        head = "".join(_cell("th", name, side) for name, side in zip(self.columns, aligned, strict=True))
        body = "".join(
            "<tr>" + "".join(_cell("td", cell, side) for cell, side in zip(row, aligned, strict=True)) + "</tr>"
            for row in self._cells()
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if self.rows else ""
        return f"<p><b>{escape(self.title)}</b></p>{table}" + (f"<ul>{notes}</ul>" if notes else "")

    def _cells(self) -> list[list[Any]]:
        return [["" if cell is None else cell for cell in row] for row in self.rows]

    def _is_numeric(self, column: int) -> bool:
        cells = [str(row[column]) for row in self.rows if row[column] is not None]
        return all(cell[:1].isdigit() or cell[:1] in "+-." for cell in cells)


class Displayed:
    """An object that shows itself as tables.

    ``repr`` and ``print`` give text, a notebook shows HTML, and rich prints its own tables. A class defines ``tables``.
    """

    __slots__ = ()

    def tables(self) -> list[Table]:
        """Return the object as tables."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.table import Table as RichTable
        from rich.text import Text

        for table in self.tables():
            yield Text(table.title, style="bold")
            if table.rows:
                shown = RichTable(box=None, pad_edge=False, header_style="dim")
                for name in table.columns:
                    shown.add_column(Text(name))
                for row in table._cells():
                    shown.add_row(*(Text(str(cell)) for cell in row))
                yield shown
            yield from (Text(f"  {note}", style="dim") for note in table.notes)


def _cell(tag: str, text: Any, side: str) -> str:
    return f'<{tag} style="{_STYLE.format(side)}">{escape(str(text))}</{tag}>'
