"""A digest of a Python function: of all that its answers depend on, as far as Python can tell.

It covers the text of its file or notebook cell, its code, defaults and closure, and the constants
and functions that it uses from its module. It does not cover what other modules, files and servers
do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from qabench.evaluation.signature import short_digest

CONSTANTS = (type(None), bool, int, float, complex, str, bytes, PurePath)
_digests: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def name_with_digest(function: Callable[..., Any]) -> str:
    """Return the name of a function, and a digest of it.

    Two functions with the same source have different digests if their defaults or closures differ.
    In one process, a function keeps the digest of its first run, even if it changes lists and
    objects that it refers to.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition(".")[2]
    constant = short_digest(_Described(constants_only=True).text(function))
    owner = function.__self__ if isinstance(function, MethodType) else function
    try:
        digests = _digests.setdefault(owner, {})
    except TypeError:  # an object without weak references
        digests = {}
    if constant not in digests:
        digests[constant] = short_digest(_Described(constants_only=False).text(function))
    return f"{name}-{digests[constant]}"


class _Described:
    """A text of a value, equal for equal values in all processes.

    Objects are described by their class, because their content could differ between processes. With
    ``constants_only``, so are lists, sets and dicts.
    """

    def __init__(self, constants_only: bool) -> None:
        self.constants_only = constants_only
        self.numbers: dict[int, int] = {}  # of the values that were met, by their id
        self.met: list[Any] = []  # keeps them alive: ids of deleted objects are used again

    def text(self, value: Any) -> str:
        if isinstance(value, CONSTANTS):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, tuple | frozenset):
            return self.of_parts(value)
        if isinstance(value, CodeType):
            return self.of_parts(
                (value.co_code, value.co_names, value.co_varnames, value.co_consts)
            )
        if id(value) in self.numbers:
            return f"#{self.numbers[id(value)]}"
        self.numbers[id(value)] = len(self.met)
        self.met.append(value)
        if isinstance(value, list | set | Mapping):
            items = tuple(value.items()) if isinstance(value, Mapping) else value
            return type(value).__name__ if self.constants_only else self.of_parts(items)
        parts = _parts_of_callable(value)
        return _class_name(value) if parts is None else self.of_parts(parts)

    def of_parts(self, parts: Iterable[Any]) -> str:
        texts = [self.text(part) for part in parts]
        if isinstance(parts, set | frozenset):
            texts.sort()
        return f"({', '.join(texts)})"


def _parts_of_callable(value: Any) -> tuple[Any, ...] | None:
    """Return the values that a function depends on, or None for another object."""
    if isinstance(value, FunctionType):
        keywords = tuple((value.__kwdefaults__ or {}).items())
        cells = tuple(_content(cell) for cell in value.__closure__ or ())
        return (
            value.__code__,
            value.__defaults__,
            keywords,
            cells,
            _used_globals(value),
            _source(value),
        )
    if isinstance(value, MethodType):
        return (
            value.__func__,
            _class_name(value.__self__),
            getattr(value.__self__, "__dict__", None),
        )
    if isinstance(value, partial):
        return value.func, value.args, tuple(value.keywords.items())
    if hasattr(value, "__wrapped__"):  # such as functools.cache
        return (value.__wrapped__,)
    if callable(value) and isinstance(type(value).__call__, FunctionType):
        return type(value).__call__, _class_name(value), getattr(value, "__dict__", None)
    return None


def _class_name(value: Any) -> str:
    named = value if isinstance(value, type | BuiltinFunctionType) else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _used_globals(function: FunctionType) -> tuple[tuple[str, Any], ...]:
    """Return the constants and functions of its own module that a function uses by name."""
    used = [
        (name, function.__globals__[name])
        for name in function.__code__.co_names
        if name in function.__globals__
    ]
    return tuple(
        (name, value)
        for name, value in used
        if isinstance(value, CONSTANTS)
        or (isinstance(value, FunctionType) and value.__module__ == function.__module__)
    )


def _source(function: FunctionType) -> str:
    """Return the text of a function's file, or of its notebook's cell, or "" for a function of a prompt."""
    try:
        lines, _ = inspect.findsource(function)
    except (TypeError, OSError):
        return ""
    return "".join(lines)
