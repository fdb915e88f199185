"""Signatures: one line with everything that a score depends on, as in sacreBLEU."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from qabench.answers import dumps
from qabench.errors import InputError
from qabench.io.environment import package_version
from qabench.io.tables import redacted


def version() -> str:
    """Return the installed version of qabench."""
    return package_version("qabench")


def signature(score: str, **fields: object) -> str:
    """Return ``score|name:value|...|qabench:VERSION``, with the fields in order and without those that are None."""
    parts = [f"{name}:{_clean(value)}" for name, value in fields.items() if value is not None]
    return "|".join([score, *parts, f"qabench:{version()}"])


def parse(line: str) -> tuple[str, dict[str, str]]:
    """Return the name of the score and the fields of a signature, in order.

    Raises:
        InputError: the line is not a signature.

    Examples:
        >>> parse("fanout_acc|config:dev|lemmatizer:simplemma-2.0.0|qabench:0.1.0")
        ('fanout_acc', {'config': 'dev', 'lemmatizer': 'simplemma-2.0.0', 'qabench': '0.1.0'})
    """
    score, *parts = line.split("|")
    if not score or not parts or not all(":" in part for part in parts):
        raise InputError(f"not a signature: {line!r:.80}; the format is score|name:value|...|qabench:VERSION")
    return score, {name: value for name, _, value in (part.partition(":") for part in parts)}


def short_digest(text: str) -> str:
    """Return the first twelve hex digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


def digest(items: Iterable[Any]) -> str:
    """Return a digest of a list of answers, twelve hex digits. It depends on their types, digits and order."""
    total = hashlib.sha256()
    for item in items:
        total.update(dumps(item).encode("utf-8") + b"\n")
    return total.hexdigest()[:12]


def _clean(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_clean, value))
    return redacted(str(value)).replace("|", "/")
