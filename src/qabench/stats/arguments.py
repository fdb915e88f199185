"""Checks of the arguments of the statistics: numbers, and whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qabench.errors import InputError

Array = npt.NDArray[np.float64]


def numbers_of(name: str, values: Any, dimensions: int) -> Array:
    """Return values as an array of numbers with 1 or 2 dimensions. Raises InputError for anything else."""
    allowed = (
        "one number per item" if dimensions == 1 else "one row of numbers per item, all of one length"
    )
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} are {values!r:.60} ({error}); allowed: {allowed}") from None
    if array.ndim > 0 and array.size == 0:
        return array.reshape((0,) * dimensions)
    if array.ndim != dimensions:
        raise InputError(f"{name} have the shape {array.shape}; allowed: {allowed}")
    return array


def check_whole(name: str, value: Any, least: int) -> None:
    """Raise InputError unless a value is a whole number that is large enough."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise InputError(f"{name} is {value!r:.60}; allowed: a whole number, {least} or more")
