"""The layout of tables in terminals: which columns fit beside each other, and where lines end.

A label column is one of the first columns, which name the rows. If a table is split, its label
columns are in every block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

SPACES_BETWEEN_COLUMNS = 2
# The minimum width of a label column with long words, in characters.
SHORTEST_LABEL = 8
_DOT_OF_NAME = re.compile(r"\.(?=[^\W\d])")
_PART_OF_NAME = re.compile(r"(?<=[-_/\N{HORIZONTAL ELLIPSIS}])(?=[^\W_])")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table, with its possible widths in characters.

    Attributes:
        position: the index of its cells in the rows.
        name: its header.
        side: the side at which its cells are aligned: "left" or "right".
        natural: the width at which no cell is broken.
        least: the width below which it is moved to the next block.
    """

    position: int
    name: str
    side: str
    natural: int
    least: int


@dataclass(frozen=True, slots=True)
class Block:
    """Columns of a table that fit beside each other, and the width of each."""

    columns: Sequence[_Column]
    widths: Sequence[int]

    def grid(self, rows: Sequence[Sequence[str]]) -> Any:
        """Return the block's columns of these rows as a rich table."""
        own_rows = []
        for row in rows:
            cells = []
            for column, width in zip(self.columns, self.widths, strict=True):
                cells.append(_broken_words(row[column.position], width))
            own_rows.append(cells)
        names = []
        for column, width in zip(self.columns, self.widths, strict=True):
            names.append(_broken_words(column.name, width))
        sides = [column.side for column in self.columns]
        return grid(names, own_rows, sides, self.widths)


def natural_width(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table in which no cell is broken."""
    return _total(_natural_widths(names, rows))


def blocks(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    sides: Sequence[str],
    label_columns: int,
    width: int,
) -> list[Block]:
    """Split the columns into blocks that fit in a width. Each block has the label columns.

    Args:
        names: the header of each column.
        rows: the cells of each row.
        sides: the side at which each column is aligned: "left" or "right".
        label_columns: the number of label columns.
        width: the width of the terminal, in characters.
    """
    natural = _natural_widths(names, rows)
    least = _least_widths(names, rows, sides, label_columns, width)
    columns = []
    for position, (name, side) in enumerate(zip(names, sides, strict=True)):
        columns.append(_Column(position, name, side, natural[position], least[position]))
    labels, others = columns[:label_columns], columns[label_columns:]
    parts = [labels]
    for column in others:
        members = [*parts[-1], column]
        if _total([member.least for member in members]) <= width:
            parts[-1] = members
        else:
            parts.append([*labels, column])
    return [_block(members, width) for members in parts]


def grid(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    sides: Sequence[str],
    widths: Sequence[int] | None = None,
) -> Any:
    """Return a rich table. Tables with the same ``widths`` align with each other."""
    table: Any = RichTable(
        box=None, pad_edge=False, padding=(0, SPACES_BETWEEN_COLUMNS, 0, 0), header_style="dim"
    )
    all_widths: Sequence[int | None] = widths or [None] * len(names)
    for name, side, width in zip(names, sides, all_widths, strict=True):
        table.add_column(Text(name), justify=side, overflow="fold", width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _natural_widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width at which no cell of a column is broken, for each column."""
    return [max(map(cell_len, cells)) for cells in zip(names, *rows, strict=True)]


def _total(widths: Sequence[int]) -> int:
    """Return the width of columns beside each other."""
    return sum(widths) + SPACES_BETWEEN_COLUMNS * (len(widths) - 1)


def _least_widths(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    sides: Sequence[str],
    label_columns: int,
    width: int,
) -> list[int]:
    """Return the minimum width of each column: its longest word, but at most half of the table.

    A number with its interval counts as one word, and may be wider than half of the table. It is
    broken only in a very narrow terminal. Words of the label columns are broken only if the widest
    other column does not fit beside them. For example, labels with a word of 30 characters and
    intervals such as "0.6908 (0.5894 to 0.7803)", of 25, do not fit in a terminal of 40. So the
    labels get 40 - 25 - 2 = 13 characters, and the intervals are not broken.
    """
    half = width // 2
    least = []
    for position, (name, side, *cells) in enumerate(zip(names, sides, *rows, strict=True)):
        words = name.split()
        numbers = cells if side == "right" else []
        if side == "left":
            for cell in cells:
                words += _with_spaces(cell).split()
        longest = max(map(cell_len, words), default=0)
        if position >= label_columns:
            longest = min(longest, half)
        least.append(max(longest, *map(cell_len, numbers), 0))
    labels, others = least[:label_columns], least[label_columns:]
    if others and _total([*labels, max(others)]) > width:
        # The width that is left for the last label column beside the widest other column.
        room = width - _total([*labels[:-1], 0, max(others)])
        # In a very narrow terminal, numbers are broken as well.
        if room < SHORTEST_LABEL:
            room = half
        least[label_columns - 1] = min(labels[-1], half, room)
    return least


def _block(columns: Sequence[_Column], width: int) -> Block:
    """Return a block of columns. Spare width goes to the column with the most lines."""
    widths = [column.least for column in columns]
    for _ in range(width - _total(widths)):
        lines = []
        for column, own_width in zip(columns, widths, strict=True):
            # A column without a name and without texts has the width 0.
            lines.append(column.natural / max(own_width, 1))
        if max(lines) <= 1:
            # Every cell fits on one line.
            break
        widths[lines.index(max(lines))] += 1
    return Block(columns, widths)


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
