"""Escape text from outside for terminals, CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import Any

# Control characters (C0 except line feed and tab, DEL, C1), line separators, marks that reorder
# text, and surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BREAKS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
_MARKDOWN = re.compile(r"[\\`*_\[\]|~]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # In LaTeX's default font encoding, OT1, the next four would print as other characters.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\ttfamily\char34}",
    "`": r"\textasciigrave{}",
    # At the start of a table's row, brackets and stars would be read as arguments of the command
    # that ends the row above.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "\N{MINUS SIGN}": "$-$",
}
_LATEX_CHARACTER = re.compile("|".join(map(re.escape, _LATEX)))
# LaTeX prints two of these in a row as one character, such as a dash.
_LATEX_LIGATURE = re.compile(r"([-',])(?=\1)")
# A signed number, or an interval such as "-0.2 to 0.1".
_NUMBER = re.compile(r"[-+][\d.][-+\d.,e%]*( to [-+]?[\d.]+)?")


def visible(text: str) -> str:
    """Return the text with control characters as escapes, such as \\x1b."""
    return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)


def one_line(value: object) -> str:
    """Return a value as one line of text without control characters, or "" for None."""
    if value is None:
        return ""
    return visible(_BREAKS.sub(" ", str(value)))


def csv_text(value: Any) -> Any:
    """Return a cell of a CSV file. Text that a spreadsheet would run as a formula gets an apostrophe."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    # Spreadsheets skip spaces and invisible characters, and read full-width signs as ASCII ones.
    plain = unicodedata.normalize("NFKC", text)
    first = next((char for char in plain if char.isprintable() and char != " "), "")
    is_formula = first in ("=", "+", "-", "@") and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def markdown_text(value: object) -> str:
    """Return a value as Markdown text, no part of which is read as HTML, a link or a cell's end."""
    return _MARKDOWN.sub(r"\\\g<0>", escape(one_line(value), quote=False))


def latex_text(value: object) -> str:
    """Return a value as LaTeX text that prints the same characters, even in the default fonts."""
    text = _LATEX_CHARACTER.sub(lambda match: _LATEX[match[0]], one_line(value))
    return _LATEX_LIGATURE.sub(r"\1{}", text)


def html_text(value: object) -> str:
    """Return a value as HTML that shows the same characters."""
    return escape(one_line(value))
