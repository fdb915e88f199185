"""Sums of per-item statistics over items drawn again or swapped at random: what every test here is made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from qabench.errors import InputError

Array = npt.NDArray[np.float64]
Statistics = Sequence[Sequence[float]] | Array
"""A row of numbers an item."""
Function = Callable[..., Array]
"""From the summed statistics, one array a column, to the score: ``lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn)``."""

RESAMPLES = 10_000
# So many drawn indices at once: what fits a core's cache is three times as fast as a block of millions.
CELLS_AT_ONCE = 100_000


def mean(total: Array, count: Array) -> Array:
    """The function whose statistics are an item's value and 1."""
    return total / count


def table(values: Sequence[float] | Statistics) -> Array:
    """Scores as the statistics of ``mean``: a row (value, 1) an item."""
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise InputError(f"scores must be one number an item; got an array of shape {column.shape}")
    return np.column_stack([column, np.ones(len(column))])


def units(statistics: Sequence[float] | Statistics, clusters: Sequence[Hashable] | None) -> Array:
    """What is drawn as a whole: the items' statistics, or their sums by cluster in the order of first appearance.

    Raises:
        InputError: no items, not a table, a value that is not finite, or not one cluster an item.
    """
    items = np.asarray(statistics, dtype=np.float64)
    if items.size == 0:
        raise InputError("a score over no questions is undefined")
    if items.ndim != 2:
        raise InputError(f"statistics must be a row of numbers an item; got an array of shape {items.shape}")
    if not np.isfinite(items).all():
        row = int(np.flatnonzero(~np.isfinite(items).all(axis=1))[0])
        raise InputError(f"item {row} has a statistic that is not finite: {items[row].tolist()}")
    if clusters is None:
        return items
    if len(clusters) != len(items):
        raise InputError(f"clusters must name each item's question: {len(clusters)} names, {len(items)} items")
    index: dict[Hashable, int] = {}
    codes = [index.setdefault(cluster, len(index)) for cluster in clusters]
    return np.column_stack([np.bincount(codes, weights=column) for column in items.T])


def drawn_sums(rows: Array, resamples: int, seed: int) -> Array:
    """Sums over as many rows as there are, drawn with replacement: an array (resamples, columns).

    How often each row was drawn times the rows' values is one matrix product, however many columns there are. Memory
    is bounded by some times the larger of ``CELLS_AT_ONCE`` and the number of rows.
    """
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, rows.shape[1]))
    for start, count in _blocks(resamples, len(rows)):
        drawn = rng.integers(len(rows), size=(count, len(rows)))
        drawn += np.arange(count)[:, None] * len(rows)  # so that one bincount counts each resample by itself
        counts = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        sums[start : start + count] = counts.astype(np.float64) @ rows
    return sums


def halved_sums(rows: Array, resamples: int, seed: int) -> tuple[Array, bool]:
    """Sums over subsets of the rows, each row in or out with probability 1/2: an array (subsets, columns).

    Returns:
        The sums, and whether they are those of all subsets (where these are no more than ``resamples``) instead of
        ``resamples`` random ones.
    """
    size = len(rows)
    if exact := 2**size <= resamples:
        resamples = 2**size
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, rows.shape[1]))
    for start, count in _blocks(resamples, size):
        if exact:
            bits = (np.arange(start, start + count)[:, None] >> np.arange(size) & 1).astype(np.float64)
        else:
            # Whole 32-bit words a resample: the generator throws the rest of a word away.
            words = -(-size // 32)
            packed = np.frombuffer(rng.bytes(4 * words * count), dtype=np.uint8).reshape(count, -1)
            bits = np.unpackbits(packed, axis=1, count=size).astype(np.float64)
        sums[start : start + count] = bits @ rows
    return sums, exact


def scores(function: Function, sums: Array) -> Array:
    """The function's value of each row of sums; nan or infinite where it is undefined there.

    Raises:
        InputError: the function does not give one score a row.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(function(*sums.T), dtype=np.float64)
    if values.shape != sums.shape[:1]:
        raise InputError(
            f"the function must give one score for each of {len(sums)} sums, as NumPy's operators do; "
            f"it gave an array of shape {values.shape}"
        )
    return values


def defined(values: Array, what: str) -> Array:
    """``values``. Raises InputError where any is not finite."""
    if bad := int(np.count_nonzero(~np.isfinite(values))):
        raise InputError(
            f"the score is undefined (division by zero?) on {bad} of {len(values)} {what}: "
            "let the function say what it is there, such as 0"
        )
    return values


def check(confidence: float, resamples: int) -> None:
    """Raises InputError for a confidence level or a number of resamples that make no sense."""
    if not 0 < confidence < 1:
        raise InputError(f"the confidence level is {confidence}; allowed: between 0 and 1, such as 0.95")
    if resamples < 2:
        raise InputError(f"{resamples} resamples; allowed: 2 or more, such as {RESAMPLES}")


def _blocks(resamples: int, size: int) -> Iterator[tuple[int, int]]:
    rows = max(1, CELLS_AT_ONCE // max(1, size))
    for start in range(0, resamples, rows):
        yield start, min(rows, resamples - start)
