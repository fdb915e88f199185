"""Kinds of the values in logs, which may have been edited.

A kind is one of:

- a type, or several of them in a union;
- ``[kind]``, a list;
- ``{"name": kind, ...}``, an object with these fields and any others. A field that is absent is None;
- ``{...: kind}``, an object whose fields all have this kind;
- ``(kind, kind)``, one of several.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def others(place: str, value: Any, kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield each part of a value that has another kind, with its place."""
    if isinstance(kind, tuple):
        problems = [list(others(place, value, each)) for each in kind]
        if all(problems):
            # The first kind is what is usual: its problem says which of its parts is wrong.
            yield problems[0][0] if problems else (place, value)
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield place, value
            return
        for number, item in enumerate(value):
            yield from others(f"{place}[{number}]", item, kind[0])
    elif isinstance(kind, dict):
        if not isinstance(value, dict):
            yield place, value
            return
        for name in value if ... in kind else kind:
            yield from others(f"{place}.{name}", value.get(name), kind.get(name, kind.get(...)))
    elif kind is None:
        if value is not None:
            yield place, value
    elif not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, int | None)):
        yield place, value
