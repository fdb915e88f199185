"""Many queries over all processors, in forked processes: they share the index's memory, and no interpreter lock."""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")

TASKS_A_WORKER = 4


def map_parallel(function: Callable[[In], Out], items: Sequence[In], workers: int | None, least: int) -> list[Out]:
    """``[function(item) for item in items]``, in forked processes where there are many items.

    Args:
        function: anything; it reaches the processes by the fork and is never pickled.
        items: pickled on their way, as are the results.
        workers: processes; None for one a processor, at most one for ``least`` items.
        least: how many items are worth a process.
    """
    if workers is None:
        workers = min(_processors(), len(items) // max(least, 1))
    # Without fork a child imports the user's main module again; a worker of somebody else's pool may have no children.
    if min(workers, len(items)) <= 1 or sys.platform != "linux" or multiprocessing.current_process().daemon:
        return list(map(function, items))
    size = -(-len(items) // (workers * TASKS_A_WORKER))
    tasks = [items[start : start + size] for start in range(0, len(items), size)]
    with warnings.catch_warnings():
        # Python warns of forking a process that has threads; the children use no lock of any other thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, context, initializer=_adopt, initargs=(function,)) as executor:
            return [result for part in executor.map(_run, tasks) for result in part]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_function: Callable[[Any], Any]


def _adopt(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function


def _run(items: Sequence[Any]) -> list[Any]:
    return [_function(item) for item in items]
