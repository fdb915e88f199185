"""Batches of inputs of similar length."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.errors import InputError


def buckets(lengths: Sequence[int], batch_size: int, longest: int | None = None) -> list[list[int]]:
    """Positions of the inputs in batches of similar length, to reduce padding; the longest first.

    With the longest first, a batch that does not fit into memory fails at once. Ties keep their order.

    Args:
        lengths: the length of each input.
        batch_size: the number of inputs per batch.
        longest: if given, the batch size is meant for inputs of this length, and batches of shorter inputs are larger,
            so that all batches have about the same number of tokens.

    Raises:
        InputError: the batch size is not positive.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; allowed: 1 or more")
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    found, start = [], 0
    while start < len(order):
        size = max(batch_size, batch_size * longest // max(1, lengths[order[start]])) if longest else batch_size
        found.append(order[start : start + size])
        start += size
    return found
