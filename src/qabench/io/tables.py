"""Text from outside made safe to print, and tables for terminals, notebooks and documents.

Text of servers, files and logs is printed without secrets and control characters.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from html import escape
from itertools import groupby
from typing import Any, TextIO
from urllib.parse import quote

FORMATS = {"markdown": "github", "latex": "latex_booktabs"}  # by tabulate's names
NUMBER_STARTS = "0123456789+-."
BETWEEN_COLUMNS = 2  # spaces in a terminal
_MARKDOWN = re.compile(r"[\\`*_\[\]|~]")
# also an interval, such as "-0.2 to 0.1"
_NUMBER = re.compile(r"[-+][\d.][-+\d.,e%]*( to [-+]?[\d.]+)?")
# C0 except line feed and tab, DEL, C1, separators of lines, and the marks that reorder text.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_PATH = re.compile(
    r"(?<![\w:/.])(?:[A-Za-z]:[/\\]|/|~[/\\])(?:[^\s'\",:;/\\]+[/\\]+)*([^\s'\",:;/\\]+)[/\\]*"
)
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
_QUERY = re.compile(r"(https?://[^\s?#'\"<>]{1,2000}+)\?[^\s'\"<>)]*?(?=[:.,;]?(?:[\s'\"<>)]|$))")
_USER = re.compile(r"(https?://)[^\s/?#'\"<>]{1,1000}@")
# A header that a server echoes, also as JSON or as Python's repr.
_LOGIN = re.compile(
    r"""(authorization["'\\]{0,3}\s?[:=,]\s?["'\\]{0,3}(?:\w{1,20}[ \t]+)?)[^\s"',;\\]+""", re.IGNORECASE
)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}|\\[xu]|&#")
_URL_SAFE = str.maketrans("+/", "-_")
_SHORTEST_SECRET = 8
REDACTED = "[redacted]"
_registered: set[str] = set()


def printable(text: object, most: int | None = None) -> str:
    """Return the text without secrets, with control characters as escapes such as \\x1b, cut to ``most`` characters.

    Text from outside is never cut before: the rest of a cut key would not be recognized.
    """
    return visible(redacted(str(text)))[:most]


def quoted(value: object, most: int) -> str:
    """Return the ``printable`` quotation of a value from outside, for an error."""
    return printable(repr(value), most)


def write_line(text: object, stream: TextIO | None = None) -> None:
    """Print one line, ``printable``, on standard output or another stream, without loading rich."""
    print(printable(text), file=stream or sys.stdout, flush=True)


def write_document(text: str) -> None:
    """Print a text as it is on standard output, where programs and files need every character.

    On a terminal, control characters are escaped.
    """
    shown = visible(text) if sys.stdout.isatty() else text
    sys.stdout.write(shown.encode("utf-8", "backslashreplace").decode("utf-8"))


def bounds_text(low: float | None, high: float | None, form: str = ".4f") -> str:
    """Return the bounds of an interval, such as "0.2500 to 0.7500".

    "not enough data" if there are none.
    """
    return "not enough data" if low is None or high is None else f"{low:{form}} to {high:{form}}"


def redacted(text: str) -> str:
    """Return the text without secrets, and without users, passwords and queries of URLs.

    Secrets are the values of variables with keys, what ``keep_secret`` got, and logins in echoed
    headers.
    """
    if len(text) < _SHORTEST_SECRET:
        return text
    secrets = _secrets()
    for form in _forms(secrets):
        text = text.replace(form, REDACTED)
    if secrets and _ESCAPE.search(text):
        text = _spellings(secrets).sub(REDACTED, text)
    text = _LOGIN.sub(rf"\1{REDACTED}", text)
    return _QUERY.sub(r"\1", _USER.sub(r"\1", text))


def keep_secret(*values: str) -> None:
    """Redact values, such as a key that was passed as an argument, from everything that is printed from now on."""
    _registered.update(value for value in values if len(value) >= _SHORTEST_SECRET)


def visible(text: str) -> str:
    """Return the text with control characters as escapes, such as \\x1b."""
    return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)


def _secrets() -> frozenset[str]:
    names = _secret_names(tuple(os.environ))  # the values are read each time: they may change
    values = {os.environ.get(name, "") for name in names}
    return frozenset(value for value in values if len(value) >= _SHORTEST_SECRET) | _registered


@lru_cache(maxsize=4)
def _forms(secrets: frozenset[str]) -> list[str]:
    """Return the secrets as they are, in URLs, and in base64 at any place of a longer text, the longest first."""
    forms = set(secrets)
    for secret in secrets:
        forms.add(quote(secret, safe=""))
        data = secret.encode("utf-8", "surrogateescape")
        for before in range(3):
            encoded = base64.b64encode(bytes(before) + data).decode()
            # The characters at the edges depend on the neighbors, too.
            first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
            forms |= {encoded[first:last], encoded[first:last].translate(_URL_SAFE)}
    return sorted(forms, key=len, reverse=True)


@lru_cache(maxsize=4)
def _spellings(secrets: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of the secrets with any of their characters escaped, as in URLs, JSON, Python and HTML."""
    return re.compile("|".join("".join(map(_spelling, form)) for form in _forms(secrets)))


def _spelling(char: str) -> str:
    """Return the pattern of a character and its escapes: %2D, %252d, \\x2d, \\u002D, &#45; and &#x2d;."""
    code = ord(char)
    in_url = "".join(
        f"%(?:25)*{_any_case(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogateescape")
    )
    in_text = rf"\\+(?:x{_any_case(f'{code:02x}')}|u{_any_case(f'{code:04x}')})"
    return f"(?:{re.escape(char)}|{in_url}|{in_text}|&#(?:0*{code}|[xX]0*{_any_case(f'{code:x}')});)"


def _any_case(digits: str) -> str:
    """Return the pattern of hexadecimal digits in both cases."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def is_secret(name: str) -> bool:
    """Return whether the value of an environment variable is a secret, by its name."""
    return _SECRET_NAME.search(name.upper()) is not None


@lru_cache(maxsize=4)
def _secret_names(names: tuple[str, ...]) -> list[str]:
    return list(filter(is_secret, names))


def without_folders(text: str) -> str:
    """Return the text with absolute paths cut to the names of their files or folders, for what is shared."""
    return _PATH.sub(r"\1", text)


def one_line(value: object) -> str:
    """Return a value as one line of text, with control characters as escapes, or "" for None."""
    return (
        ""
        if value is None
        else visible(" ".join(re.split(r"[\t\n\v\f\r\x85\u2028\u2029]+", str(value))))
    )


def _shown(value: object) -> str:
    return redacted(one_line(value))


def csv_text(value: Any) -> Any:
    """Return a cell of a CSV file.

    Text that a spreadsheet would run as a formula gets an apostrophe.
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    # Spreadsheets skip spaces and invisible characters, and read full-width signs as the ASCII ones.
    plain = unicodedata.normalize("NFKC", text)
    first = next((char for char in plain if char.isprintable() and char != " "), "")
    formula = first in ("=", "+", "-", "@") and not _NUMBER.fullmatch(text)
    return f"'{text}" if formula else text


def markdown_text(value: object) -> str:
    """Return a value as Markdown that shows the same characters, without HTML, links or new cells."""
    return _MARKDOWN.sub(r"\\\g<0>", escape(one_line(value), quote=False))


def html_text(value: object) -> str:
    """Return a value as HTML that shows the same characters."""
    return escape(one_line(value))


def flattened(
    value: Mapping[str, Any], between: str = ".", before: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of each value that is not a dict.

    In a nested dict, the name is such as "acc.loose".
    """
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

    def formatted(self, format: str) -> str:
        """Return the table as "csv", "markdown" or "latex", everything escaped.

        Numbers are never rounded.
        """
        if format == "csv":
            text = io.StringIO()
            rows = [[csv_text(cell) for cell in row] for row in [self.columns, *self.rows]]
            csv.writer(text, lineterminator="\n").writerows(rows)
            return text.getvalue()
        # tabulate escapes LaTeX in cells
        escaped: Callable[[object], str] = one_line
        title, note, between = "% {}", "% {}", "\n"
        if format == "markdown":
            escaped, title, note, between = markdown_text, "**{}**", "{}", "\n\n"
        body = self._tabulated(FORMATS[format], escaped)
        notes = [note.format(escaped(text)) for text in self.notes]
        return between.join([title.format(escaped(self.title)), body, *notes]) + "\n"

    def text(self) -> str:
        """Return the table as text, for ``print``."""
        body = self._tabulated("simple", align=self._alignment())
        notes = [f"  {one_line(note)}" for note in self.notes]
        return "\n".join([one_line(self.title), *([body] if self.rows else []), *notes])

    def html(self) -> str:
        """Return the table as HTML, for notebooks.

        Everything in it is escaped.
        """
        notes = "".join(f"<li>{html_text(note)}</li>" for note in self.notes)
        table = self._tabulated("html", align=self._alignment()) if self.rows else ""
        return f"<p><b>{html_text(self.title)}</b></p>{table}" + (f"<ul>{notes}</ul>" if notes else "")

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Yield the table for rich, which wraps what does not fit.

        If it does not fit, and rows have the same name, such as one row per score and group, the name
        becomes a line above its rows.
        """
        from rich.cells import cell_len
        from rich.text import Text

        rows = [
            [f"{cell:,}" if type(cell) is int else _shown(cell) for cell in row] for row in self.rows
        ]
        columns = list(map(_shown, self.columns))
        widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
        sides = self._alignment()
        yield Text(_shown(self.title), style="bold")
        rest = sum(widths[1:]) + BETWEEN_COLUMNS * (len(widths) - 1)
        is_wide = widths[0] + rest > options.max_width
        if is_wide and len({row[0] for row in rows}) < len(rows):
            fits = rest <= options.max_width
            for name, own in groupby(rows, key=lambda row: row[0]):
                yield Text(name, style="bold")
                unnamed = [row[1:] for row in own]
                yield _grid(columns[1:], unnamed, ["left", *sides[2:]], widths[1:] if fits else None)
        elif rows:
            if is_wide:
                rows = [[_broken(row[0], options.max_width - rest), *row[1:]] for row in rows]
            yield _grid(columns, rows, sides)
        yield from (Text(f"  {_shown(note)}", style="dim") for note in self.notes)

    def _tabulated(
        self, format: str, shown: Callable[[object], str] = one_line, align: Sequence[str] | None = None
    ) -> str:
        """Return the rows in a format of tabulate, which escapes them in HTML."""
        from tabulate import tabulate

        rows = [[shown(cell) for cell in row] for row in self.rows]
        columns = list(map(shown, self.columns))
        return str(tabulate(rows, columns, tablefmt=format, disable_numparse=True, colalign=align))

    def _alignment(self) -> list[str]:
        """Return the side of each column: numbers, except in the first column, are on the right."""
        sides = []
        for _, *column in zip(self.columns, *self.rows, strict=True):
            starts = [str(cell)[:1] for cell in column if cell is not None]
            sides.append("right" if all(start in NUMBER_STARTS for start in starts) else "left")
        return ["left", *sides[1:]]


def _grid(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    sides: Sequence[str],
    widths: Sequence[int] | None = None,
) -> Any:
    """Return a table of rich. With the widths of its columns, it is aligned to those above it."""
    from rich.table import Table as RichTable
    from rich.text import Text

    grid: Any = RichTable(
        box=None, pad_edge=False, padding=(0, BETWEEN_COLUMNS, 0, 0), header_style="dim"
    )
    least_widths: Sequence[int | None] = widths or [None] * len(columns)
    for name, side, width in zip(columns, sides, least_widths, strict=True):
        grid.add_column(Text(name), justify=side, overflow="fold", min_width=width)
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _broken(name: str, width: int) -> str:
    """Return a name such as "a.b.c", with line breaks after dots where it is longer than the width."""
    lines = [""]
    for part in re.findall(r"[^.]*\.|[^.]+", name):
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


class Displayed:
    """An object that shows itself as tables.

    ``repr`` and ``print`` give text, a notebook shows HTML, and rich prints its own tables. A class
    defines ``tables``.
    """

    __slots__ = ()

    def tables(self) -> list[Table]:
        """Return the object as tables."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the first table as a pandas DataFrame."""
        return self.tables()[0].to_pandas()

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield from self.tables()
