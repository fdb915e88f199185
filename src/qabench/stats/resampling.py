"""Sums over rows drawn with replacement, and over subsets of rows that a test swaps."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Indices drawn at once: blocks that fit into a core's cache are three times as fast.
CELLS_AT_ONCE = 100_000


def drawn_sums(rows: Array, resamples: int, seed: int) -> Array:
    """Return sums over bootstrap samples of the rows: an array (resamples, columns).

    The sums are the matrix product of the number of draws of each row and the values of the rows.
    They are computed column by column, so that the last digit of a score does not depend on the
    other columns.
    """
    sums = np.empty((resamples, rows.shape[1]))
    columns = np.asfortranarray(rows, dtype=np.float64)
    # A column of ones, such as the count of a mean, sums to the number of draws, len(rows).
    is_ones = (columns == 1).all(axis=0)
    start = 0
    for block in _drawn(len(rows), resamples, seed):
        end = start + len(block)
        for j in range(columns.shape[1]):
            if is_ones[j]:
                sums[start:end, j] = len(rows)
            else:
                sums[start:end, j] = _product(block, columns[:, j])
        start = end
    return sums


def _drawn(size: int, resamples: int, seed: int) -> Iterator[Array]:
    """Yield how often each of ``size`` rows is drawn, in blocks: arrays (resamples, size)."""
    rng = np.random.default_rng(seed)
    for _, count in _blocks(resamples, size):
        drawn = rng.integers(size, size=(count, size))
        # One bincount then counts each resample separately.
        drawn += np.arange(count)[:, None] * size
        counts = np.bincount(drawn.ravel(), minlength=drawn.size)
        yield counts.reshape(drawn.shape).astype(np.float64)


def _product(counts: Array, values: Array) -> Array:
    """Return the matrix product.

    For a single row, BLAS would start threads, which on a busy machine takes 100 times as long.
    """
    if len(counts) == 1:
        return np.asarray(np.einsum("ij,j...->i...", counts, values))
    return np.asarray(counts @ values)


def subset_sums(rows: Array) -> Array:
    """Return the sums over all subsets of the rows: an array (2 ** rows, columns)."""
    size = len(rows)
    # Bit i of a subset's number says whether row i is in the subset.
    subsets = np.arange(2**size)[:, None]
    is_inside = (subsets >> np.arange(size)) & 1
    return np.asarray(is_inside.astype(np.float64) @ rows)


def halved_sums(rows: Array, resamples: int, seed: int) -> Array:
    """Return sums over random subsets with half of the rows on average: (resamples, columns)."""
    size = len(rows)
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, rows.shape[1]))
    # Each resample takes whole 32-bit words. The generator discards the rest of a word at the end
    # of a block, so otherwise the subsets would depend on the size of the blocks.
    words = ceil(size / 32)
    for start, count in _blocks(resamples, size):
        packed = np.frombuffer(rng.bytes(4 * words * count), dtype=np.uint8).reshape(count, -1)
        is_inside = np.unpackbits(packed, axis=1, count=size).astype(np.float64)
        sums[start : start + count] = _product(is_inside, rows)
    return sums


def _blocks(resamples: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the first resample and the number of resamples of each block."""
    per_block = max(1, CELLS_AT_ONCE // max(1, size))
    for start in range(0, resamples, per_block):
        yield start, min(per_block, resamples - start)
