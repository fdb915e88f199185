"""Sums of per-item statistics over resampled or randomly swapped items: the basis of every test in this package."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from qabench.errors import InputError

Array = npt.NDArray[np.float64]
Statistics = Sequence[Sequence[float]] | Array
"""One row of numbers per item."""
Function = Callable[..., Array]
"""From summed statistics, one array per column, to scores: ``lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn)``."""

CONFIDENCE = 0.95  # the level of intervals and tests
RESAMPLES = 10_000
SEED = 0
# The number of indices drawn at once: blocks that fit into a core's cache are three times as fast as one large block.
CELLS_AT_ONCE = 100_000
# Scores of systems, metrics and groups of the same size use the same draws, which are cached up to this many bytes.
CACHE_BYTES = 200_000_000
_cached: OrderedDict[tuple[int, int, int, int], list[Array]] = OrderedDict()


def mean(total: Array, count: Array) -> Array:
    """Divide the sum of values by the number of items: the function of ``table``."""
    return total / count


def table(values: Sequence[float] | Statistics) -> Array:
    """Return scores as the statistics of ``mean``: one row (value, 1) per item."""
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise InputError(f"scores must be one number per item; got an array of shape {column.shape}")
    return np.column_stack([column, np.ones(len(column))])


def units(statistics: Sequence[float] | Statistics, clusters: Sequence[Hashable] | None) -> Array:
    """Return the units of resampling: the items' statistics, or their sums by cluster in the order of first appearance.

    Raises:
        InputError: no items, not a table, a value that is not finite, or not one cluster per item.
    """
    items = np.asarray(statistics, dtype=np.float64)
    if items.size == 0:
        raise InputError("nothing to score: a score over no questions is undefined")
    if items.ndim != 2:
        raise InputError(f"statistics must be one row of numbers per item; got an array of shape {items.shape}")
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
    """Sum over as many rows as there are, drawn with replacement: an array (resamples, columns).

    The sums are the matrix product of the number of draws of each row and the values of the rows. They are computed
    column by column, so that the last digit of a score does not depend on the other columns.

    Raises:
        InputError: fewer than two resamples.
    """
    if resamples < 2:
        raise InputError(f"{resamples} resamples; allowed: 2 or more, such as {RESAMPLES}")
    sums = np.empty((resamples, rows.shape[1]))
    columns = np.asfortranarray(rows, dtype=np.float64)
    ones = (columns == 1).all(axis=0)
    start = 0
    for block in _counts(len(rows), resamples, seed):
        for j in range(columns.shape[1]):
            # The number of draws is the number of rows, so the count of a mean is known.
            sums[start : start + len(block), j] = len(rows) if ones[j] else block @ columns[:, j]
        start += len(block)
    return sums


def _counts(size: int, resamples: int, seed: int) -> Iterator[Array]:
    """Yield the number of draws of each of ``size`` rows, in blocks of resamples: arrays (resamples, size)."""
    key = (size, resamples, seed, CELLS_AT_ONCE)
    if key in _cached:
        _cached.move_to_end(key)
        yield from _cached[key]
        return
    cacheable = size * resamples * 8 <= CACHE_BYTES
    blocks = []
    rng = np.random.default_rng(seed)
    for _, count in _blocks(resamples, size):
        drawn = rng.integers(size, size=(count, size))
        drawn += np.arange(count)[:, None] * size  # so that one bincount counts each resample separately
        block = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape).astype(np.float64)
        if cacheable:
            blocks.append(block)
        yield block
    if cacheable:
        _cached[key] = blocks
        while sum(8 * n * times for n, times, *_ in _cached) > CACHE_BYTES:
            _cached.popitem(last=False)


def subset_sums(rows: Array) -> Array:
    """Sum over all subsets of the rows: an array (2 ** rows, columns)."""
    size = len(rows)
    bits = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(np.float64)
    return np.asarray(bits @ rows)


def halved_sums(rows: Array, resamples: int, seed: int) -> Array:
    """Sum over random subsets of the rows, each row with probability 1/2: an array (resamples, columns)."""
    size = len(rows)
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, rows.shape[1]))
    words = -(-size // 32)  # whole 32-bit words per resample: the generator discards the rest of a word
    for start, count in _blocks(resamples, size):
        packed = np.frombuffer(rng.bytes(4 * words * count), dtype=np.uint8).reshape(count, -1)
        bits = np.unpackbits(packed, axis=1, count=size).astype(np.float64)
        sums[start : start + count] = bits @ rows
    return sums


def scores(function: Function, sums: Array) -> Array:
    """Return the function's value for each row of sums; nan or infinite if it is undefined.

    Raises:
        InputError: the function does not return one score per row.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(function(*sums.T), dtype=np.float64)
    if values.shape != sums.shape[:1]:
        raise InputError(
            f"the function must return one score for each of {len(sums)} sums, as NumPy's operators do; "
            f"it returned an array of shape {values.shape}"
        )
    return values


def observed_score(function: Function, rows: Array) -> float:
    """Return the score of all items. Raises InputError if it is undefined."""
    score = float(scores(function, rows.sum(axis=0, keepdims=True))[0])
    if not np.isfinite(score):
        raise InputError(
            "the score of all items is undefined (division by zero?): the function must return a value there, such as 0"
        )
    return score


def _blocks(resamples: int, size: int) -> Iterator[tuple[int, int]]:
    rows = max(1, CELLS_AT_ONCE // max(1, size))
    for start in range(0, resamples, rows):
        yield start, min(rows, resamples - start)
