"""What commands print: lines, tables in five formats, JSON, and progress.

rich is imported when it is used.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from qabench.io.tables import Table, printable, write_document

if TYPE_CHECKING:
    from rich.console import Console

# lines in a pipe are read by a program or a pager, and not wrapped at 80 characters
PIPE_WIDTH = 200
CLEARED = "\r\x1b[K"  # to the start of an empty line
SECONDS_BETWEEN_CHANGES = 0.1  # of progress on a terminal
SECONDS_BETWEEN_LINES = 5.0  # of progress elsewhere

_STATE = {"quiet": False}


def set_quiet(quiet: bool) -> None:
    """Suppress progress and hints, or show them."""
    _STATE["quiet"] = quiet


def say(text: object, style: str | None = None) -> None:
    """Print a line on standard output, with control characters escaped and without interpreting markup."""
    _console().print(printable(text), style=style, markup=False, soft_wrap=True)


def say_on_stderr(text: object, style: str | None = None) -> None:
    """Print a line on standard error, as ``say`` does on standard output."""
    _console(stderr=True).print(printable(text), style=style, markup=False, soft_wrap=True)


def hint(text: object, style: str | None = "dim") -> None:
    """Print a line on standard error, unless ``--quiet`` was passed."""
    if not _STATE["quiet"]:
        say_on_stderr(text, style)


def warn(text: object) -> None:
    """Print a warning on standard error."""
    say_on_stderr(f"warning: {text}", "yellow")


def json_text(document: Any) -> str:
    """Return one JSON document as ``print_json`` prints it."""
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    write_document(json_text(document))


def print_table(table: Table, format: str = "table", document: Any = None) -> None:
    """Print a table on standard output.

    See ``print_tables``.
    """
    print_tables([table], format, document)


def print_tables(tables: Sequence[Table], format: str = "table", document: Any = None) -> None:
    """Print tables on standard output: "table" for a terminal, "csv", "markdown", "latex" (booktabs) or "json".

    "json" prints the document, by default the tables.
    """
    if format == "json":
        print_json(document or {"tables": [table.as_dict() for table in tables]})
    elif format == "table":
        for table in tables:
            _console().print(table, "", soft_wrap=True)
    else:
        write_document("\n".join(table.formatted(format) for table in tables))


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(stderr=stderr, highlight=False, width=width)


@contextmanager
def progress_bar(label: str, unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """Show progress on standard error: one line that changes on a terminal, else a line every few seconds.

    Args:
        label: what is done, such as "Scoring".
        unit: what is counted, such as "questions".

    Yields:
        A function of the number done and the total (0 if it is unknown).
    """
    start, end, pause = "", "\n", SECONDS_BETWEEN_LINES
    if sys.stderr.isatty():
        start, end, pause = CLEARED, "", SECONDS_BETWEEN_CHANGES
    last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        if _STATE["quiet"] or (time.monotonic() - last < pause and done != total):
            return
        last = time.monotonic()
        numbers = f"{done:,} of {total:,}" if total else f"{done:,}"
        text = printable(f"{label}: {numbers} {unit}".rstrip())
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(start, end="", file=sys.stderr, flush=True)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings as one line, without file names and source lines."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(message)
        yield
