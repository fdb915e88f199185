"""Text from outside (servers, files, logs) made safe to print: no secrets, no control characters."""

from __future__ import annotations

import os
import re

# C0 except line feed and tab, DEL, C1, and the marks that reorder text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
_QUERY = re.compile(r"(https?://[^\s?#'\"<>]{1,2000}+)\?[^\s'\"<>)]*?(?=[:.,;]?(?:[\s'\"<>)]|$))")
_SHORTEST_SECRET = 8
REDACTED = "[redacted]"


def printable(text: object) -> str:
    """The text with secrets redacted and control characters shown as escapes, such as \\x1b."""
    return _CONTROL.sub(lambda found: ascii(found.group())[1:-1], redacted(str(text)))


def redacted(text: str) -> str:
    """The text without the values of environment variables with keys, and without the queries of URLs."""
    for secret in _secrets():
        text = text.replace(secret, REDACTED)
    return _QUERY.sub(r"\1", text)


def _secrets() -> list[str]:
    found = {value for name, value in os.environ.items() if _SECRET_NAME.search(name.upper())}
    return sorted((value for value in found if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)
