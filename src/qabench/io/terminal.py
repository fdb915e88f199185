"""Text from outside (servers, files, logs) made safe to print: no secrets, no control characters."""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from typing import TextIO

# C0 except line feed and tab, DEL, C1, separators of lines, and the marks that reorder text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]")
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
_QUERY = re.compile(r"(https?://[^\s?#'\"<>]{1,2000}+)\?[^\s'\"<>)]*?(?=[:.,;]?(?:[\s'\"<>)]|$))")
_USER = re.compile(r"(https?://)[^\s/?#'\"<>]{1,1000}@")
_SHORTEST_SECRET = 8
REDACTED = "[redacted]"


def printable(text: object) -> str:
    """Return the text with secrets redacted and control characters shown as escapes, such as \\x1b."""
    return visible(redacted(str(text)))


def write_line(text: object, stream: TextIO | None = None) -> None:
    """Print one line, ``printable``, on standard output or another stream, without loading rich."""
    print(printable(text), file=stream or sys.stdout, flush=True)


def write_document(text: str) -> None:
    """Print a text as it is on standard output, where programs and files need every character.

    On a terminal, control characters are escaped.
    """
    shown = visible(text) if sys.stdout.isatty() else text
    sys.stdout.write(shown.encode("utf-8", "backslashreplace").decode("utf-8"))


def redacted(text: str) -> str:
    """Return the text without the values of variables with keys, and without users, passwords and queries of URLs."""
    for secret in _secrets():
        text = text.replace(secret, REDACTED)
    return _QUERY.sub(r"\1", _USER.sub(r"\1", text))


def visible(text: str) -> str:
    """Return the text with control characters as escapes, such as \\x1b."""
    return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)


def _secrets() -> list[str]:
    names = _secret_names(tuple(os.environ))  # the values are read each time: they may change
    values = {os.environ.get(name, "") for name in names}
    return sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)


@lru_cache(maxsize=4)
def _secret_names(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if _SECRET_NAME.search(name.upper())]
