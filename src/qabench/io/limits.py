"""Limits for everything from outside: depth and size of what is parsed, time and size of answers of servers.

Without them a reply such as ``'{"a":' * 5000`` would end a whole run with a RecursionError.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

MAX_DEPTH = 100  # of nested lists and objects
MAX_CHARACTERS = 1 << 29  # of a file
MAX_REPLY_CHARACTERS = 1 << 24  # of a model's reply, a server's response, a prompt
# Encodings that raise on most input, or take quadratic time.
NO_CHARSETS = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}
MAX_YAML_VALUES = 1_000_000  # aliases can expand a few lines to billions of values


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an HTTP client.

    Attributes:
        max_bytes: the largest body, before and after decompression.
        seconds: for one exchange, from the connection to the last byte, with all redirects.
        silent_seconds: the longest pause between two parts of a response.
        sent_per_second: bytes. The time of an upload at this rate is added to ``seconds``.
        redirects: which redirects are followed. "same host" allows an upgrade to https, too.
        addresses: "any". "public" refuses addresses from which a page could reach into a private
            network. "private" refuses link-local ones only, where clouds serve credentials.
    """

    max_bytes: int = 64 << 20
    seconds: float = 300.0
    silent_seconds: float = 60.0
    sent_per_second: float = math.inf
    redirects: Literal["none", "same host", "any"] = "same host"
    addresses: Literal["any", "public", "private"] = "any"


class TooLarge(ValueError):
    """A document is nested too deeply or is too long."""


def json_of(data: str | bytes, longest: int = MAX_CHARACTERS) -> Any:
    """Return the value of a JSON document of at most ``longest`` characters, or raise a ValueError.

    ``TooLarge`` if it is too long or nested deeper than ``MAX_DEPTH``. An integer has at most 4,300
    digits.
    """
    _check_length(data, longest)
    text = data.decode("utf-8") if isinstance(data, bytes) else data
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        check_depth(value)
    return value


def numbered_lines(data: bytes | IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1, as in JSONL.

    Only \\n ends a line.
    """
    for number, line in enumerate(io.BytesIO(data) if isinstance(data, bytes) else data, 1):
        if line.strip():
            yield number, line.removesuffix(b"\n")


def yaml_of(text: str) -> Any:
    """Return the value of a YAML document. Raises ValueError: not YAML, or ``TooLarge``."""
    import yaml

    _check_length(text, MAX_REPLY_CHARACTERS)

    class Loader(yaml.SafeLoader):
        def flatten_mapping(self, node: Any) -> None:
            # A few lines of merged lists would expand to billions of keys while they are read.
            if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
                raise ValueError("merge keys (<<) are not allowed: write the keys out")
            super().flatten_mapping(node)

    try:
        value = yaml.load(text, Loader)
    except RecursionError:
        raise _too_deep() from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    check_depth(value, MAX_YAML_VALUES)
    return value


# A key of more than MAX_DEPTH parts, which takes the parser quadratic time and memory.
_LONG_KEY = re.compile(
    rf"""(?<![\w.\-"'])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_DEPTH}}}"""
)


def toml_of(text: str) -> dict[str, Any]:
    """Return the table of a TOML document. Raises ValueError: not TOML, or ``TooLarge``."""
    import tomllib

    _check_length(text, MAX_REPLY_CHARACTERS)
    if _LONG_KEY.search(text):
        raise _too_deep()
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise _too_deep() from None
    check_depth(document)
    return document


def decoded(data: bytes, charset: str | None) -> str | None:
    """Return text in a declared charset, or None if there is none, or if it is not an encoding of text."""
    try:
        if charset and codecs.lookup(charset).name.replace("_", "-") not in NO_CHARSETS:
            return data.decode(charset, "replace")
    except (LookupError, ValueError):  # unknown, or not an encoding of text
        pass
    return None


def check_depth(value: Any, most_values: float = math.inf) -> None:
    """Raise TooLarge if lists and dicts are nested deeper than ``MAX_DEPTH`` or have too many values."""
    level, values = [value] if isinstance(value, _CONTAINERS) else [], 0
    for _ in range(MAX_DEPTH):
        values += sum(map(len, level))
        if values > most_values:
            raise TooLarge(f"more than {most_values:,} values")
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, _CONTAINERS)
        ]
    if level:
        raise _too_deep()


_CONTAINERS = (dict, list)
_CHUNK = 1 << 20  # bytes that are read at once
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_json_depth(content: IO[bytes], name: str) -> None:
    """Raise TooLarge if JSON is longer than ``MAX_CHARACTERS`` bytes or nested deeper than ``MAX_DEPTH``.

    It is not parsed, and takes the memory of a part of it. For readers of other libraries.

    Args:
        content: a file in UTF-8.
        name: of the file, for the error.
    """
    pending, size, depth, in_string = b"", 0, 0, False
    while chunk := content.read(_CHUNK):
        size += len(chunk)
        if size > MAX_CHARACTERS:
            raise TooLarge(f"{name}: more than {MAX_CHARACTERS:,} bytes")
        # An escaped quotation mark does not end a string. Its backslash may be the end of a chunk.
        text = re.sub(rb"\\.", b"", pending + chunk, flags=re.DOTALL)
        pending = text[-1:] if text.endswith(b"\\") else b""
        for number, part in enumerate(text.split(b'"')):
            if number:
                in_string = not in_string
            for bracket in b"" if in_string else part.translate(None, _NOT_BRACKETS):
                depth += 1 if bracket in b"[{" else -1
                if depth > MAX_DEPTH:
                    raise TooLarge(f"{name}: {_too_deep()}")


def _check_length(data: str | bytes, longest: int) -> None:
    if len(data) > longest:
        raise TooLarge(f"{len(data):,} characters, more than {longest:,}")


def _too_deep() -> TooLarge:
    return TooLarge(f"nested deeper than {MAX_DEPTH} levels")
