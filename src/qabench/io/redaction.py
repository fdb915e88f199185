"""The boundary between what qabench knows and what it shows: secrets and folders are removed here.

Text from servers, files and logs may repeat a key that was sent, so everything that is printed,
logged or cached passes ``redacted`` or ``printable``.
"""

from __future__ import annotations

import base64
import os
import re
import sys
from functools import lru_cache
from typing import TextIO
from urllib.parse import quote

from qabench.io.escaping import visible

REDACTED = "[redacted]"
# Shorter values would also match ordinary words.
_SHORTEST_SECRET = 8
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
# Any parameter in a URL's query may be an API key, so the whole query is removed.
_QUERY = re.compile(r"(https?://[^\s?#'\"<>]{1,2000}+)\?[^\s'\"<>)]*?(?=[:.,;]?(?:[\s'\"<>)]|$))")
_USER = re.compile(r"(https?://)[^\s/?#'\"<>]{1,1000}@")
# An authorization header that a server repeats, as text, JSON or Python's repr.
_LOGIN = re.compile(
    r"""(authorization["'\\]{0,3}\s?[:=,]\s?["'\\]{0,3}(?:\w{1,20}[ \t]+)?)[^\s"',;\\]+""",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}|\\[xu]|&#")
_URL_SAFE = str.maketrans("+/", "-_")
_PATH = re.compile(
    r"(?<![\w:/.])(?:[A-Za-z]:[/\\]|/|~[/\\])(?:[^\s'\",:;/\\]+[/\\]+)*([^\s'\",:;/\\]+)[/\\]*"
)
_registered: set[str] = set()


def printable(text: object, most: int | None = None) -> str:
    """Return the text without secrets and control characters, cut to ``most`` characters.

    A text from outside must be passed whole, because a part of a key would not be recognized as a
    secret.
    """
    return visible(redacted(str(text)))[:most]


def quoted(value: object, most: int) -> str:
    """Return the repr of a value from outside in ``printable`` form, for an error."""
    return printable(repr(value), most)


def write_line(text: object, stream: TextIO | None = None) -> None:
    """Print one ``printable`` line on standard output or another stream, without loading rich."""
    print(printable(text), file=stream or sys.stdout, flush=True)


def write_document(text: str) -> None:
    """Print a text unchanged on standard output, but with control characters escaped on a terminal."""
    if sys.stdout.isatty():
        text = visible(text)
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def redacted(text: str) -> str:
    """Return the text without secrets, and with URLs without users, passwords and queries.

    Secrets are the values of environment variables such as API keys, the values passed to
    ``keep_secret``, and logins in headers that a server repeats.
    """
    if len(text) < _SHORTEST_SECRET:
        return text
    secrets = _secrets()
    for form in _forms(secrets):
        text = text.replace(form, REDACTED)
    if secrets and _ESCAPE.search(text):
        text = _spellings(secrets).sub(REDACTED, text)
    text = _LOGIN.sub(rf"\1{REDACTED}", text)
    text = _USER.sub(r"\1", text)
    return _QUERY.sub(r"\1", text)


def keep_secret(*values: str) -> None:
    """Redact these values, such as a key passed as an argument, from everything printed later."""
    _registered.update(value for value in values if len(value) >= _SHORTEST_SECRET)


def is_secret(name: str) -> bool:
    """Tell by the name of an environment variable whether its value is a secret."""
    return _SECRET_NAME.search(name.upper()) is not None


def without_folders(text: str) -> str:
    """Return the text with absolute paths cut to their last part, for files that are shared."""
    return _PATH.sub(r"\1", text)


def _secrets() -> frozenset[str]:
    # The values of the variables are read each time, because they may change. The search for the
    # names is cached.
    names = _secret_names(tuple(os.environ))
    values = {os.environ.get(name, "") for name in names}
    return frozenset(value for value in values if len(value) >= _SHORTEST_SECRET) | _registered


@lru_cache(maxsize=4)
def _secret_names(names: tuple[str, ...]) -> list[str]:
    return list(filter(is_secret, names))


@lru_cache(maxsize=4)
def _forms(secrets: frozenset[str]) -> list[str]:
    """Return the secrets unchanged, URL-encoded, and as parts of base64 texts, longest first."""
    forms = set(secrets)
    for secret in secrets:
        forms.add(quote(secret, safe=""))
        data = secret.encode("utf-8", "surrogateescape")
        # Base64 encodes three bytes at a time, so the text of a secret depends on how many bytes
        # before it are in its first group: 0, 1 or 2.
        for before in range(3):
            encoded = base64.b64encode(bytes(before) + data).decode()
            # The characters at the edges also encode bits of the bytes next to the secret.
            start = -(-before * 8 // 6)
            end = (before + len(data)) * 8 // 6
            forms.add(encoded[start:end])
            forms.add(encoded[start:end].translate(_URL_SAFE))
    return sorted(forms, key=len, reverse=True)


@lru_cache(maxsize=4)
def _spellings(secrets: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of the secrets with any character escaped, as in URLs, JSON and HTML."""
    patterns = ["".join(map(_spelling, form)) for form in _forms(secrets)]
    return re.compile("|".join(patterns))


def _spelling(char: str) -> str:
    r"""Return the pattern of a character and its escapes.

    A key that is printed in a URL or in HTML must be found as well: the escapes of "-" are %2D,
    %252d, \x2d, \u002D, &#45; and &#x2d;.
    """
    code = ord(char)
    in_url = ""
    for byte in char.encode("utf-8", "surrogateescape"):
        in_url += f"%(?:25)*{_any_case(f'{byte:02x}')}"
    in_text = rf"\\+(?:x{_any_case(f'{code:02x}')}|u{_any_case(f'{code:04x}')})"
    in_html = f"&#(?:0*{code}|[xX]0*{_any_case(f'{code:x}')});"
    return f"(?:{re.escape(char)}|{in_url}|{in_text}|{in_html})"


def _any_case(digits: str) -> str:
    """Return the pattern of hexadecimal digits in upper and lower case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
