"""What functions that numba compiles (extra ``fast``) share; the module can only be imported with numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from qabench.retrieval.bm25.arrays import Array, Floats

Function = TypeVar("Function", bound=Callable[..., Any])

# Compiled at the first call, and then kept in numba's cache on the disk.
compiled: Callable[[Function], Function] = numba.njit(cache=True, nogil=True)

TINY = 1e-30  # instead of 0, so that a document counts as seen; far below the differences that rounding causes


@compiled
def replace_lowest(heap: Floats, items: Array, value: float, item: int) -> None:
    """Replaces the first element of a heap with the lowest value at the top."""
    i, size = 0, len(heap)
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[i], items[i] = heap[child], items[child]
        i = child
    heap[i], items[i] = value, item
