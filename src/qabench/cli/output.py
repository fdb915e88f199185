"""What the commands print with: consoles, tables, JSON, progress. Imports rich, so commands import it when they run."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from qabench.tables import Table

# In a pipe a program or a pager reads the lines: they are not to be broken at 80 characters.
PIPE_WIDTH = 200


def console() -> Console:
    """The console of results, on standard output."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=PIPE_WIDTH)


def errors() -> Console:
    """The console of everything that is no result, on standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(document, ensure_ascii=False, indent=1))


def print_table(table: Table) -> None:
    """A table of figures: the first column names the rows, the others stand to the right."""
    shown = RichTable(box=None, pad_edge=False)
    for i, column in enumerate(table.columns):
        shown.add_column(column, justify="left" if i == 0 else "right", header_style="dim")
    for row in table.rows:
        shown.add_row(*map(_cell, row))
    out = console()
    out.print(table.title, style="bold", markup=False, soft_wrap=True)
    out.print(shown)
    for note in table.notes:
        out.print(f"  {note}", style="dim", markup=False, soft_wrap=True)
    out.print()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while something long runs; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as one line for a person, without file names and source lines."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: errors().print(
            f"warning: {message}", style="yellow", markup=False
        )
        yield
