"""What commands print: lines, tables in five formats, JSON, and progress.

rich is imported when it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from qabench.errors import FallbackWarning, installable
from qabench.io.files import cache_dir
from qabench.io.redaction import printable, write_document
from qabench.io.tables import Table

if TYPE_CHECKING:
    from rich.console import Console

# In a pipe, a program or a pager reads the lines, so they may be longer than 80 characters. COLUMNS
# overrides this width.
PIPE_WIDTH = 200
CLEAR_LINE = "\r\x1b[K"
# On a terminal, progress is one line that is redrawn at most this often.
SECONDS_BETWEEN_CHANGES = 0.1
# In a file or a pipe, progress is a new line at most this often.
SECONDS_BETWEEN_LINES = 5.0
# The file in qabench's cache that lists digests of the warnings that were shown.
SHOWN_WARNINGS = "shown-warnings.txt"
# The time of the first answers alone would give a bad estimate of the time that is left.
SECONDS_BEFORE_ESTIMATE = 5.0

_STATE = {"quiet": False}


def set_quiet(quiet: bool) -> None:
    """Suppress progress and hints, or show them."""
    _STATE["quiet"] = quiet


def say(text: object, style: str | None = None) -> None:
    """Print a line on standard output. Control characters are escaped, and markup is not read."""
    _console().print(printable(text), style=style, markup=False, soft_wrap=True)


def say_on_stderr(text: object, style: str | None = None) -> None:
    """Print a line on standard error, as ``say`` does on standard output."""
    _console(stderr=True).print(printable(text), style=style, markup=False, soft_wrap=True)


def hint(text: object, style: str | None = "dim") -> None:
    """Print a line on standard error, unless ``--quiet`` was passed."""
    if not _STATE["quiet"]:
        say_on_stderr(text, style)


def warn(text: object) -> None:
    """Print a warning on standard error. Its pip commands are adapted to this installation."""
    say_on_stderr(f"warning: {installable(str(text))}", "yellow")


def json_text(document: Any) -> str:
    """Return one JSON document as ``print_json`` prints it."""
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    write_document(json_text(document))


def print_table(table: Table, format: str = "table", document: Any = None) -> None:
    """Print a table on standard output. See ``print_tables``."""
    print_tables([table], format, document)


def print_tables(tables: Sequence[Table], format: str = "table", document: Any = None) -> None:
    """Print tables on standard output.

    Args:
        tables: the tables.
        format: "table" for a terminal, "csv", "markdown", "latex" (booktabs) or "json".
        document: what "json" prints. None for the tables.
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
    columns = os.environ.get("COLUMNS", "")
    # If the width is None, rich takes it from COLUMNS or the terminal. Some terminals without a
    # size set COLUMNS to 0.
    has_columns = columns.isdecimal() and int(columns) > 0
    width = None if stream.isatty() or has_columns else PIPE_WIDTH
    return Console(stderr=stderr, highlight=False, width=width)


@contextmanager
def progress_bar(label: str, unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """Show progress on standard error.

    On a terminal it is one line that changes, elsewhere a line every few seconds.

    Args:
        label: what is done, such as "Scoring".
        unit: what is counted, such as "questions".

    Yields:
        A function of the number done and the total (0 if it is unknown).
    """
    start, end, pause = "", "\n", SECONDS_BETWEEN_LINES
    if sys.stderr.isatty():
        start, end, pause = CLEAR_LINE, "", SECONDS_BETWEEN_CHANGES
    last = time.monotonic()
    # When the first items were done, and how many.
    first: tuple[float, int] | None = None

    def show(done: int, total: int) -> None:
        nonlocal last, first
        now = time.monotonic()
        if first is None or done < first[1]:
            first = (now, done)
        if _STATE["quiet"] or (now - last < pause and done != total):
            return
        last = now
        numbers = f"{done:,} of {total:,}" if total else f"{done:,}"
        left = time_left(now - first[0], done - first[1], total - done)
        text = printable(f"{label}: {numbers} {unit}".rstrip() + left)
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(start, end="", file=sys.stderr, flush=True)


def time_left(seconds: float, done: int, remaining: int) -> str:
    """Return an estimate of the time that is left, such as ", about 3 min left", or "".

    Args:
        seconds: the time since progress started.
        done: the number of items done in this time.
        remaining: the number of items that are not done yet.
    """
    if seconds < SECONDS_BEFORE_ESTIMATE or done <= 0 or remaining <= 0:
        return ""
    left = seconds / done * remaining
    if left < 60:
        return f", about {left:.0f} s left"
    if left < 2 * 3600:
        return f", about {left / 60:.0f} min left"
    return f", about {left / 3600:.0f} h left"


@contextmanager
def scoring_progress() -> Iterator[Callable[[int, int], None]]:
    """Show the progress of scoring, and each warning as one line. Yields the progress function."""
    with plain_warnings(), progress_bar("Scoring", "texts") as progress:
        try:
            yield progress
        except KeyboardInterrupt:
            hint(
                "interrupted: if a judge was asked, its replies are kept, and the same command asks for the others"
            )
            raise


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    if not issubclass(category, FallbackWarning) or _is_first_time(str(message)):
        warn(message)


def _is_first_time(text: str) -> bool:
    """Tell whether a text is shown for the first time on this machine, and record that it was."""
    path = cache_dir() / SHOWN_WARNINGS
    digest = hashlib.sha256(text.encode()).hexdigest()
    try:
        if path.is_file() and digest in path.read_text("ascii").split():
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="ascii") as file:
            file.write(digest + "\n")
    except (OSError, ValueError):
        # Without a writable cache, the warning is shown each time.
        pass
    return True


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning as one line, without file names and source lines."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        yield
