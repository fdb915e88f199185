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
_DOT_OF_NAME = re.compile(r"\.(?=[^\W\d])")
_PART_OF_NAME = re.compile(r"(?<=[-_/\N{HORIZONTAL ELLIPSIS}])(?=[^\W_])")
_HYPHEN_OF_NUMBER = re.compile(r"(?<!\S)-(?=\d)")
SPACES_BETWEEN_COLUMNS = 2
# The minimum width of a column of long names, in characters.
SHORTEST_NAME = 8


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
        is_grouped = self._has_parts()
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

        rows = [list(map(_terminal_text, row)) for row in self.rows]
        columns = list(map(_shown, self.columns))
        sides = self._alignment()
        width = options.max_width
        yield Text(_shown(self.title), style="bold")
        if not rows:
            pass
        elif _width(_widths(columns, rows)) <= width:
            yield _grid(columns, rows, sides)
        elif self._has_parts():
            # The rows below each name are printed with the same columns and widths.
            sides = ["left", *sides[2:]]
            blocks = _blocks(columns[1:], [row[1:] for row in rows], sides, width)
            for name, members in groupby(rows, key=lambda row: row[0]):
                yield Text(name, style="bold")
                own_rows = [row[1:] for row in members]
                for block in blocks:
                    yield block.grid(own_rows)
        else:
            blocks = _blocks(columns, rows, sides, width)
            for number, block in enumerate(blocks):
                if number:
                    yield Text("")
                yield block.grid(rows)
        for note in self.notes:
            yield Text(f"  {_shown(note)}", style="dim")

    def _has_parts(self) -> bool:
        """Return whether consecutive rows share a name, such as the rows of a score by system."""
        names = [row[0] for row in self.rows]
        parts = [name for name, _ in groupby(names)]
        is_repeated = len(set(parts)) == len(parts) < len(names)
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


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width that each column has if no cell is broken."""
    from rich.cells import cell_len

    return [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + SPACES_BETWEEN_COLUMNS * (len(widths) - 1)


def _least_widths(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    sides: Sequence[str],
    names: Sequence[int],
    width: int,
) -> list[int]:
    """Return the minimum width of each column: its longest word, but at most half of the table.

    A number with its interval counts as one word, and may be wider than half of the table. It is
    broken only in a very narrow terminal. The names of the rows are broken only if the widest other
    column does not fit beside them.
    """
    from rich.cells import cell_len

    half = width // 2
    least = []
    for place, (head, side, *cells) in enumerate(zip(columns, sides, *rows, strict=True)):
        words = head.split()
        numbers = cells if side == "right" else []
        if side == "left":
            for cell in cells:
                words += _with_spaces(cell).split()
        longest = max(map(cell_len, words), default=0)
        if place not in names:
            longest = min(longest, half)
        least.append(max(longest, *map(cell_len, numbers), 0))
    others = [least[place] for place in range(len(least)) if place not in names]
    if others and _width([*(least[place] for place in names), max(others)]) > width:
        room = width - _width([*(least[place] for place in names[:-1]), 0, max(others)])
        # In a very narrow terminal, numbers are broken as well.
        if room < SHORTEST_NAME:
            room = half
        least[names[-1]] = min(least[names[-1]], half, room)
    return least


@dataclass(frozen=True, slots=True)
class _Block:
    """Columns of a table that fit beside each other: their positions, names, sides and widths."""

    places: Sequence[int]
    columns: Sequence[str]
    sides: Sequence[str]
    widths: Sequence[int]

    def grid(self, rows: Sequence[Sequence[str]]) -> Any:
        """Return the block's columns of these rows as a rich table."""
        own_rows = []
        for row in rows:
            cells = []
            for place, width in zip(self.places, self.widths, strict=True):
                cells.append(_broken_words(row[place], width))
            own_rows.append(cells)
        columns = list(map(_broken_words, self.columns, self.widths))
        return _grid(columns, own_rows, self.sides, self.widths)


def _blocks(
    columns: Sequence[str], rows: Sequence[Sequence[str]], sides: Sequence[str], width: int
) -> list[_Block]:
    """Split the columns into blocks that fit in a width. Each block has the names of the rows.

    The names are the first column, or the first two if the first one has numbers, such as ranks.
    ``_least_widths`` tells how narrow a column may be, and ``_block`` who gets the remaining width.
    """
    names = [0]
    if len(columns) > 1 and _are_numbers([row[0] for row in rows]):
        names = [0, 1]
    natural = _widths(columns, rows)
    least = _least_widths(columns, rows, sides, names, width)
    blocks: list[list[int]] = [names]
    for place in range(len(names), len(columns)):
        members = [*blocks[-1], place]
        if _width([least[position] for position in members]) <= width:
            blocks[-1] = members
        else:
            blocks.append([*names, place])
    return [_block(places, columns, sides, natural, least, width) for places in blocks]


def _block(
    places: Sequence[int],
    columns: Sequence[str],
    sides: Sequence[str],
    natural: Sequence[int],
    least: Sequence[int],
    width: int,
) -> _Block:
    """Return a block of columns. Spare width goes to the column with the most lines."""
    widths = [least[place] for place in places]
    for _ in range(width - _width(widths)):
        # A column without a name and without texts has the width 0.
        lines = [natural[place] / max(own, 1) for place, own in zip(places, widths, strict=True)]
        if max(lines) <= 1:
            # Every cell fits on one line.
            break
        widths[lines.index(max(lines))] += 1
    own_columns = [columns[place] for place in places]
    own_sides = [sides[place] for place in places]
    return _Block(places, own_columns, own_sides, widths)


def _grid(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    sides: Sequence[str],
    widths: Sequence[int] | None = None,
) -> Any:
    """Return a rich table. Tables with the same ``widths`` align with each other."""
    from rich.table import Table as RichTable
    from rich.text import Text

    grid: Any = RichTable(
        box=None, pad_edge=False, padding=(0, SPACES_BETWEEN_COLUMNS, 0, 0), header_style="dim"
    )
    all_widths: Sequence[int | None] = widths or [None] * len(columns)
    for name, side, width in zip(columns, sides, all_widths, strict=True):
        grid.add_column(Text(name), justify=side, overflow="fold", width=width)
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _with_spaces(name: str) -> str:
    """Return a name such as "a.b.c" with spaces where a line may end."""
    return _DOT_OF_NAME.sub(". ", name)


def _broken_words(text: str, width: int) -> str:
    """Break the words that are wider than the column, because rich wraps between words only."""
    return " ".join(_broken(word, width) for word in text.split(" "))


def _broken(name: str, width: int) -> str:
    """Return a name such as "a.b.c", with line breaks after dots where it is longer than the width.

    Lines also end after hyphens, underscores and slashes if a part between two dots is longer than
    the width.
    """
    parts = _DOT_OF_NAME.sub(".\n", name).split("\n")
    if any(len(part) > width for part in parts):
        parts = _PART_OF_NAME.sub("\n", "\n".join(parts)).split("\n")
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)
