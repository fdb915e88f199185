"""Check the types of arguments. The error for a wrong type names the argument.

Each function takes the value first, and then the name of the argument for the error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qabench.errors import InputError


def checked_k(k: int, name: str = "k") -> int:
    """Return ``k`` as an int. Raises InputError unless it is an integer of at least 1."""
    if type(k) is not int:
        # True is an integer in Python.
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise InputError(f"{name} is {k!r:.60}; expected an integer of at least 1")
        k = int(k)
    if k < 1:
        raise InputError(f"{name} is {k}; it must be at least 1")
    return k


def checked_string(value: object, name: str) -> str:
    """Return ``value`` if it is a string. Raises InputError otherwise."""
    if not isinstance(value, str):
        raise InputError(f"{name} is {value!r:.60}; expected a string")
    return value


def checked_path(value: object, name: str) -> Path:
    """Return ``value`` as a path if it is a string or a PathLike. Raises InputError otherwise."""
    # A ``PathLike`` may represent a path in bytes.
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise InputError(f"{name} is {value!r:.60}; expected a path")
    return Path(value)


def checked_flag(value: object, name: str) -> bool:
    """Return a Python or NumPy bool as a bool. Raises InputError for other types."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {value!r:.60}; expected True or False")
    return bool(value)


def checked_function(value: Any, name: str) -> Callable[..., Any]:
    """Return ``value`` if it is callable. Raises InputError otherwise."""
    if not callable(value):
        raise InputError(f"{name} is {value!r:.60}; expected a function")
    return value  # type: ignore[no-any-return]


def checked_where(where: object) -> Mapping[str, Any]:
    """Return ``where`` if it is a mapping of columns to values. Raises InputError otherwise."""
    if not isinstance(where, Mapping):
        raise InputError(
            f"where is {where!r:.60}; expected columns and values, such as {{'chapter': 1}}"
        )
    return where
