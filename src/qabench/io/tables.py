"""Tables for terminals, notebooks, documents and programs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any

from qabench.io.escaping import csv_text, html_text, latex_text, markdown_text, one_line
from qabench.io.redaction import redacted

NUMBER_STARTS = "0123456789+-.<"
# These texts replace a number, so a column that has them is still a column of numbers.
NO_BOUNDS, UNDEFINED = NO_NUMBERS = ("not enough data", "undefined")
_HYPHEN_OF_NUMBER = re.compile(r"(?<!\S)-(?=\d)")


def bounds_text(low: float | None, high: float | None, form: str = ".4f") -> str:
    """Return the bounds of an interval, such as "0.2500 to 0.7500", or "not enough data"."""
    if low is None or high is None:
        return NO_BOUNDS
    return f"{low:{form}} to {high:{form}}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be printed, shown in a notebook, and written as CSV, Markdown or LaTeX.

    Attributes:
        title: what the table shows.
        columns: the names of the columns. The first column names the rows.
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

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=self.columns)

    def without(self, column: str) -> Table:
        """Return the table without a column."""
        position = self.columns.index(column)
        columns, *rows = [list(cells) for cells in (self.columns, *self.rows)]
        for cells in (columns, *rows):
            del cells[position]
        return replace(self, columns=columns, rows=rows)

    def formatted(self, format: str) -> str:
        """Return the table as "csv", "markdown" or "latex", escaped and not rounded."""
        if format == "csv":
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            for row in (self.columns, *self.rows):
                writer.writerow(map(csv_text, row))
            return text.getvalue()
        if format == "latex":
            # Title and notes are comments, because an article has its own caption.
            title, *notes = [f"% {latex_text(text)}" for text in (self.title, *self.notes)]
            return "\n".join([title, self.tabular(), *notes]) + "\n"
        body = self._tabulated("github", markdown_text, self._alignment())
        notes = list(map(markdown_text, self.notes))
        return "\n\n".join([f"**{markdown_text(self.title)}**", body, *notes]) + "\n"

    def tabular(self) -> str:
        """Return the rows as LaTeX, for the package booktabs.

        If several rows have the same name, as in a table with one row per score and pair, the name
        becomes a line above these rows.
        """
        sides = [side[0] for side in self._alignment()]
        names = [_latex_cell(row[0], sides[0]) for row in self.rows]
        is_grouped = self._is_grouped()
        start = 1 if is_grouped else 0
        lines = [
            rf"\begin{{tabular}}{{{''.join(sides[start:])}}}",
            r"\toprule",
            " & ".join(map(latex_text, self.columns[start:])) + r" \\",
        ]
        if not is_grouped:
            lines.append(r"\midrule")
        last = None
        for name, row in zip(names, self.rows, strict=True):
            if is_grouped and name != last:
                lines.append(r"\midrule")
                lines.append(rf"\multicolumn{{{len(sides) - 1}}}{{l}}{{\emph{{{name}}}}} \\")
                last = name
            cells = map(_latex_cell, row[start:], sides[start:])
            lines.append(" & ".join(cells) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def text(self) -> str:
        """Return the table as text, for ``print``."""
        body = self._tabulated("simple", align=self._alignment())
        notes = [f"  {one_line(note)}" for note in self.notes]
        return "\n".join([one_line(self.title), *([body] if self.rows else []), *notes])

    def html(self) -> str:
        """Return the table as HTML, for notebooks. Everything in it is escaped."""
        notes = "".join(f"<li>{html_text(note)}</li>" for note in self.notes)
        table = self._tabulated("html", align=self._alignment()) if self.rows else ""
        return f"<p><b>{html_text(self.title)}</b></p>{table}" + (
            f"<ul>{notes}</ul>" if notes else ""
        )

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Yield the table for rich, as wide as the terminal allows.

        If it does not fit, and several rows have the same name, as in a table with one row per
        score and group, the name becomes a line above these rows. If it still does not fit, texts
        are wrapped between words, and the columns that do not fit even then follow in further parts.
        """
        from rich.text import Text

        # Imported here, because it imports rich, and many users of this module print no table.
        from qabench.io.terminal_tables import blocks, grid, natural_width

        rows = [list(map(_terminal_text, row)) for row in self.rows]
        columns = list(map(_shown, self.columns))
        sides = self._alignment()
        width = options.max_width
        yield Text(_shown(self.title), style="bold")
        if not rows:
            pass
        elif natural_width(columns, rows) <= width:
            yield grid(columns, rows, sides)
        elif self._is_grouped():
            # The rows below each name are printed with the same columns and widths.
            sides = ["left", *sides[2:]]
            own_rows = [row[1:] for row in rows]
            parts = blocks(columns[1:], own_rows, sides, _label_columns(own_rows), width)
            for name, members in groupby(rows, key=lambda row: row[0]):
                yield Text(name, style="bold")
                rows_of_name = [row[1:] for row in members]
                for block in parts:
                    yield block.grid(rows_of_name)
        else:
            parts = blocks(columns, rows, sides, _label_columns(rows), width)
            for number, block in enumerate(parts):
                if number:
                    yield Text("")
                yield block.grid(rows)
        for note in self.notes:
            yield Text(f"  {_shown(note)}", style="dim")

    def _is_grouped(self) -> bool:
        """Return whether the rows are grouped by name, such as the rows of each score by system.

        All rows of a name must be consecutive, and some name must have several rows. Numbers, such
        as ranks, are no names of groups. A single column has nothing to show below the names.
        """
        if len(self.columns) == 1:
            return False
        names = [row[0] for row in self.rows]
        groups = [name for name, _ in groupby(names)]
        is_repeated = len(set(groups)) == len(groups) < len(names)
        return is_repeated and not _are_numbers(names)

    def _tabulated(
        self,
        format: str,
        shown: Callable[[object], str] = one_line,
        align: Sequence[str] | None = None,
    ) -> str:
        """Return the rows in one of tabulate's formats. Its HTML is escaped."""
        from tabulate import tabulate

        rows = [list(map(shown, row)) for row in self.rows]
        columns = list(map(shown, self.columns))
        # If tabulate parsed numbers, it would round them and drop trailing zeros.
        return str(tabulate(rows, columns, tablefmt=format, disable_numparse=True, colalign=align))

    def _alignment(self) -> list[str]:
        """Return the side of each column: numbers, except in the first column, are on the right."""
        sides = []
        for _, *column in zip(self.columns, *self.rows, strict=True):
            sides.append("right" if _are_numbers(column) else "left")
        return ["left", *sides[1:]]


class Displayed:
    """An object that shows itself as tables.

    ``repr`` and ``print`` give text, a notebook shows HTML, and rich prints its own tables. A
    subclass defines ``tables``.
    """

    __slots__ = ()

    def tables(self) -> list[Table]:
        """Return the object as tables."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the first table as a pandas DataFrame."""
        return self.tables()[0].to_pandas()

    def to_latex(self) -> str:
        """Return the tables as LaTeX (booktabs)."""
        return "\n".join(table.formatted("latex") for table in self.tables())

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield from self.tables()


def _are_numbers(cells: Sequence[object]) -> bool:
    """Return whether all cells begin as numbers do, or are empty, or say why there is no number."""
    texts = [str(cell) for cell in cells if cell is not None]
    return all(text[:1] in NUMBER_STARTS for text in texts if text not in NO_NUMBERS)


def _latex_cell(value: object, side: str) -> str:
    """Return a cell as LaTeX. Negative numbers have a minus sign."""
    text = latex_text(value)
    return _HYPHEN_OF_NUMBER.sub("$-$", text) if side == "r" else text


def _shown(value: object) -> str:
    return redacted(one_line(value))


def _terminal_text(cell: object) -> str:
    """Return a cell for a terminal. Counts have a comma between thousands."""
    # The type is compared, because ``isinstance`` counts True as an int, too.
    return f"{cell:,}" if type(cell) is int else _shown(cell)


def _label_columns(rows: Sequence[Sequence[str]]) -> int:
    """Return how many columns name the rows: one, or two if the first has numbers, such as ranks."""
    if len(rows[0]) > 1 and _are_numbers([row[0] for row in rows]):
        return 2
    return 1
