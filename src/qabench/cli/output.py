"""Output of the commands: consoles, tables in five formats, JSON, progress.

This module imports rich, so commands import it when they run.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from qabench.cli.quiet import is_quiet
from qabench.io.tables import Table
from qabench.io.terminal import printable, write_document, write_line

# In a pipe, lines are not wrapped at 80 characters: a program or a pager reads them.
PIPE_WIDTH = 200
GAP = 2  # spaces between columns
TEXT_WIDTH = 16  # the minimum width of a wrapped column of text
SECONDS_BETWEEN_LINES = 5.0  # of progress, if standard error is not a terminal


def console() -> Console:
    """The console of results, on standard output."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def errors() -> Console:
    """The console of everything that is not a result, on standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: object, style: str | None = None) -> None:
    """Prints a line on standard output: control characters are escaped, markup is not interpreted."""
    console().print(printable(text), style=style, markup=False, soft_wrap=True)


def say_on_stderr(text: object, style: str | None = None) -> None:
    """As ``say``, on standard error."""
    errors().print(printable(text), style=style, markup=False)


def hint(text: object, style: str | None = "dim") -> None:
    """Prints a line on standard error, unless ``--quiet`` was given."""
    if not is_quiet():
        say_on_stderr(text, style)


def warn(text: object) -> None:
    """Prints a warning on standard error."""
    say_on_stderr(f"warning: {text}", "yellow")


def print_json(document: Any) -> None:
    """Prints one JSON document on standard output."""
    write_document(json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def print_table(table: Table, format: str = "table") -> None:
    """Prints a table on standard output; see ``print_tables``."""
    print_tables([table], format)


def print_tables(tables: Sequence[Table], format: str = "table") -> None:
    """Prints tables on standard output: "table" for a terminal, "csv", "markdown", "latex" (booktabs) or "json"."""
    if format == "json":
        print_json({"tables": [table.as_dict() for table in tables]})
    for i, table in enumerate(tables if format != "json" else ()):
        if format == "table":
            _print_rich(table)
        else:
            write_document(table.formatted(format) + ("" if i == len(tables) - 1 else "\n"))


def _print_rich(table: Table) -> None:
    out = console()
    shown, dropped = _fitting(table, out.width)
    made = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for i in shown:
        text = _is_text(table, i)
        made.add_column(
            escape(table.columns[i]),
            justify="left" if i == 0 or text else "right",
            header_style="dim",
            no_wrap=not text,
            min_width=min(TEXT_WIDTH, _width(table, i)) if text else _width(table, i),
        )
    for row in table.rows:
        made.add_row(*(escape(_cell(row[i])) for i in shown))
    out.print(printable(table.title), style="bold", markup=False, soft_wrap=True)
    out.print(made)
    for note in table.notes:
        out.print(f"  {printable(note)}", style="dim", markup=False, soft_wrap=True)
    if dropped:
        names = ", ".join(table.columns[i] for i in dropped)
        out.print(f"  not shown, terminal too narrow: {names} (see --format csv)", style="dim", markup=False)
    out.print()


def _fitting(table: Table, width: int) -> tuple[list[int], list[int]]:
    """The columns that fit into the width without truncating a number, and the others; the last are dropped first."""
    kept = list(range(len(table.columns)))
    while len(kept) > 2 and sum(_least(table, i) + GAP for i in kept) - GAP > width:
        kept.pop()
    return kept, [i for i in range(len(table.columns)) if i not in kept]


def _least(table: Table, column: int) -> int:
    return min(TEXT_WIDTH, _width(table, column)) if _is_text(table, column) else _width(table, column)


def _width(table: Table, column: int) -> int:
    return max(map(len, [table.columns[column], *(_cell(row[column]) for row in table.rows)]))


def _is_text(table: Table, column: int) -> bool:
    """Whether a column contains words, which can be wrapped, instead of numbers and intervals."""
    cells = [_cell(row[column]) for row in table.rows]
    return column == 0 or any(cell and not any(character.isdigit() for character in cell) for cell in cells)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else printable(value)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Progress on standard error: a bar on a terminal, else a plain line every few seconds; nothing with --quiet."""
    if is_quiet():
        yield None
    elif not sys.stderr.isatty():
        yield _lines(what)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(what: str) -> Callable[[int, int], None]:
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            write_line(f"{what}: {done:,} of {total:,}", sys.stderr)

    return progress


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Prints warnings as one line, without file names and source lines."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(message)
        yield
