"""Limits for everything from outside: documents that are parsed, and responses of servers.

Without limits, a reply such as ``'{"a":' * 5000`` would end a whole run with a RecursionError.
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

# Lists and objects are nested at most this deep.
MAX_DEPTH = 100
# The limit for files.
MAX_CHARACTERS = 1 << 29
# The limit for replies of models, responses of servers, and prompts.
MAX_REPLY_CHARACTERS = 1 << 24
# Encodings that raise errors for most input, or take quadratic time.
NO_CHARSETS = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}
# In YAML, aliases can expand a few lines to billions of values.
MAX_YAML_VALUES = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an HTTP client.

    Attributes:
        max_bytes: the largest body, before and after decompression.
        seconds: the time for one exchange, from the connection to the last byte, including all
            redirects.
        silent_seconds: the longest pause between two parts of a response.
        sent_per_second: the assumed rate of uploads, in bytes. The time that an upload takes at
            this rate is added to ``seconds``.
        redirects: which redirects are followed. "same host" allows an upgrade to https, too.
        addresses: which IP addresses are allowed. "public": only public ones, so that a link in a
            page cannot reach into a private network. "private": private ones, too, but no
            link-local ones, where clouds serve credentials. "any": all.
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
    """Return the value of a JSON document.

    Args:
        data: the document.
        longest: the maximum number of characters.

    Raises:
        TooLarge: the document is too long, or is nested deeper than ``MAX_DEPTH``.
        ValueError: it is not JSON, or has an integer of more than 4,300 digits.
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
    """Yield the nonblank lines with their numbers from 1. As in JSONL, only \\n ends a line."""
    lines = io.BytesIO(data) if isinstance(data, bytes) else data
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line.removesuffix(b"\n")


def yaml_of(text: str) -> Any:
    """Return the value of a YAML document. Raises ValueError if it is invalid or ``TooLarge``."""
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
    """Return the table of a TOML document. Raises ValueError if it is invalid or ``TooLarge``."""
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
    """Decode data with a declared charset. Return None if it is not a usable text encoding."""
    try:
        if charset and codecs.lookup(charset).name.replace("_", "-") not in NO_CHARSETS:
            return data.decode(charset, "replace")
    except (LookupError, ValueError):
        # The charset is unknown, or not an encoding of text.
        pass
    return None


def check_depth(value: Any, max_values: float = math.inf) -> None:
    """Raise TooLarge if lists and dicts are nested deeper than ``MAX_DEPTH`` or have too many values."""
    # Depth first, because a container that was just reached is still in the processor's cache.
    open_containers: list[Iterator[Any]] = [iter([value])]
    n_values = 0
    while open_containers:
        for child in open_containers[-1]:
            # Most values are strings, and this test is the fastest one.
            if type(child) is str:
                continue
            if isinstance(child, dict):
                children = iter(child.values())
            elif isinstance(child, list):
                children = iter(child)
            else:
                continue
            if len(open_containers) > MAX_DEPTH:
                raise _too_deep()
            n_values += len(child)
            if n_values > max_values:
                raise TooLarge(f"more than {max_values:,} values")
            # The rest of this container follows when the child's values have been checked.
            open_containers.append(children)
            break
        else:
            open_containers.pop()


_BYTES_PER_READ = 1 << 20
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_json_depth(content: IO[bytes], name: str) -> None:
    """Raise TooLarge if JSON has more than ``MAX_CHARACTERS`` bytes or ``MAX_DEPTH`` levels.

    This is for files that another library then reads. Nothing is parsed, and only a part of the
    file is in memory at a time.

    Args:
        content: a file in UTF-8.
        name: the file's name, for the error.
    """
    pending = b""
    size = depth = 0
    in_string = False
    while chunk := content.read(_BYTES_PER_READ):
        size += len(chunk)
        if size > MAX_CHARACTERS:
            raise TooLarge(f"{name}: more than {MAX_CHARACTERS:,} bytes")
        # An escaped quotation mark does not end a string. Its backslash may be the end of a chunk.
        text = re.sub(rb"\\.", b"", pending + chunk, flags=re.DOTALL)
        pending = text[-1:] if text.endswith(b"\\") else b""
        for number, part in enumerate(text.split(b'"')):
            if number:
                in_string = not in_string
            if in_string:
                continue
            for bracket in part.translate(None, _NOT_BRACKETS):
                if bracket in b"[{":
                    depth += 1
                else:
                    depth -= 1
                if depth > MAX_DEPTH:
                    raise TooLarge(f"{name}: {_too_deep()}")


def _check_length(data: str | bytes, longest: int) -> None:
    if len(data) > longest:
        raise TooLarge(f"{len(data):,} characters, more than {longest:,}")


def _too_deep() -> TooLarge:
    return TooLarge(f"nested deeper than {MAX_DEPTH} levels")
