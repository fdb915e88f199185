"""Scores as functions of sums over units, the basis of all intervals and tests.

A unit is an item, or a question with all of its items. A score is a function of the summed
statistics of the units, so it can be computed again without one unit, or for units that are drawn
or swapped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qabench.errors import InputError

Array = npt.NDArray[np.float64]
Statistics = Sequence[Sequence[float]] | Array
"""One row of numbers per item."""
Values = Sequence[float] | Statistics
"""One score or one row of numbers per item."""
Clusters = Sequence[Hashable] | None
"""Each item's question, if one question gives several items."""
Function = Callable[..., Array]
"""Maps summed statistics, one array per column, to scores: ``lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn)``."""

# Sums in another order differ in their last digits. Numbers count as equal if they differ by at
# most this share of the largest one.
ROUNDING = 1e-9


def numbers_of(name: str, values: Any, dimensions: int) -> Array:
    """Return values as an array with 1 or 2 dimensions. Raises InputError for anything else."""
    if dimensions == 1:
        allowed = "one number per item"
    else:
        allowed = "one row of numbers per item, all of one length"
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} are {values!r:.60} ({error}); allowed: {allowed}") from None
    if array.ndim > 0 and array.size == 0:
        # NumPy gives an empty list one dimension, also where rows are expected.
        return array.reshape((0,) * dimensions)
    if array.ndim != dimensions:
        raise InputError(f"{name} have the shape {array.shape}; allowed: {allowed}")
    return array


def mean(total: Array, count: Array) -> Array:
    """Return the mean from the sums of the two columns that ``table`` makes."""
    return total / count


def table(values: Values) -> Array:
    """Return scores as the statistics of ``mean``: one row (value, 1) per item."""
    column = numbers_of("scores", values, 1)
    return np.column_stack([column, np.ones(len(column))])


def units(statistics: Values, clusters: Clusters) -> Array:
    """Return the statistics of the items, or their sums by cluster in first-seen order."""
    items = numbers_of("statistics", statistics, 2)
    if items.size == 0:
        raise InputError("nothing to score: there are no items, so the score is undefined")
    if not np.isfinite(items).all():
        is_finite = np.isfinite(items).all(axis=1)
        row = int(np.flatnonzero(~is_finite)[0])
        raise InputError(f"item {row} has a statistic that is not finite: {items[row].tolist()}")
    if clusters is None:
        return items
    index: dict[Hashable, int] = {}
    try:
        codes = [index.setdefault(cluster, len(index)) for cluster in clusters]
    except TypeError as error:
        # The ids are not iterable, or one is a list, which cannot be a key.
        allowed = "the id of each item's question"
        raise InputError(f"clusters are {clusters!r:.60} ({error}); allowed: {allowed}") from None
    if len(codes) != len(items):
        raise InputError(
            f"there are {len(codes)} clusters for {len(items)} items; allowed: one per item"
        )
    sums = [np.bincount(codes, weights=column) for column in items.T]
    return np.column_stack(sums)


def scores(function: Function, sums: Array) -> Array:
    """Return the function's value for each row of sums: NaN or infinite where it is undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(function(*sums.T), dtype=np.float64)
    if values.shape != sums.shape[:1]:
        raise InputError(
            f"the function returned an array of shape {values.shape} for {len(sums)} sums; allowed: one score per sum, "
            "as from NumPy's operators"
        )
    return values


def defined(values: Array) -> Array:
    """Return the scores that are defined, which are the finite ones."""
    return values[np.isfinite(values)]


def in_unit_interval(values: Array) -> bool:
    """Return whether all values are between 0 and 1."""
    return bool(((values >= 0) & (values <= 1)).all())


def observed_score(function: Function, rows: Array) -> float:
    """Return the score of all items. Raises InputError if it is undefined."""
    score = float(scores(function, rows.sum(axis=0, keepdims=True))[0])
    if not np.isfinite(score):
        raise InputError(
            "the score of all items is undefined (division by zero?): the function must return a value there, such as 0"
        )
    return score


def scores_without_one(function: Function, rows: Array) -> Array:
    """Return the scores without one row at a time, NaN or infinite where they are undefined."""
    return scores(function, rows.sum(axis=0) - rows)


def jackknife_variance(left_out: Array) -> float:
    """Return the jackknife variance of a score from its values without one row at a time.

    For a mean, it is the variance of the rows (with n - 1) divided by n. Source: Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11.
    """
    squares = (left_out - left_out.mean()) ** 2
    return float(squares.sum()) * (len(left_out) - 1) / len(left_out)


def degrees_of_freedom(squares: Array) -> float:
    """Return the Satterthwaite degrees of freedom of a variance, between 1 and n - 1.

    They are twice the squared variance, divided by the variance of the variance. If a few rows make
    up most of the variance, the number is small.

    Args:
        squares: what each row adds to the variance, the square of a deviation.
    """
    total = float(squares.sum())
    spread = float((squares**2).sum()) - total**2 / len(squares)
    most = len(squares) - 1
    # The spread of equal squares is 0, which must not be a divisor.
    if 2 * total**2 >= most * spread:
        return most
    return max(1.0, 2 * total**2 / spread)
