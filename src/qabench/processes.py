"""Work on all processors in forked processes, which share the memory of this one."""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")

TASKS_PER_WORKER = 4


def most_workers() -> int:
    """The number of processes to use: 1 if forking is not safe, else one per processor."""
    return len(os.sched_getaffinity(0)) if _can_fork() else 1


def map_parallel(
    function: Callable[[In], Out],
    items: Sequence[In],
    workers: int | None,
    least: int = 1,
    items_per_task: int | None = None,
) -> list[Out]:
    """``[function(item) for item in items]``, in forked processes if there are many items.

    Args:
        function: any function; the processes inherit it by forking, so it need not be picklable.
        items: picklable, and so are the results.
        workers: processes; None for one per processor, but at most one for ``least`` items.
        least: the minimum number of items per process.
        items_per_task: the number of items sent to a process at a time; None for a quarter of its share.

    Raises:
        BrokenProcessPool: a process was killed.
    """
    return list(iterate_parallel(function, items, workers, least, items_per_task))


def iterate_parallel(
    function: Callable[[In], Out],
    items: Sequence[In],
    workers: int | None,
    least: int = 1,
    items_per_task: int | None = None,
) -> Iterator[Out]:
    """The results of ``map_parallel``, each as soon as it and those before it are there, for showing progress."""
    if workers is None:
        workers = min(most_workers(), len(items) // max(least, 1))
    if min(workers, len(items)) <= 1 or not _can_fork():
        yield from map(function, items)
        return
    size = items_per_task or -(-len(items) // (workers * TASKS_PER_WORKER))
    tasks = [items[start : start + size] for start in range(0, len(items), size)]
    with warnings.catch_warnings():
        # Python warns about forking a process with threads; the children do not use locks of other threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        # This executor, unlike multiprocessing.Pool, notices when a worker is killed.
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, context, initializer=_adopt, initargs=(function,)) as executor:
            for part in executor.map(_run, tasks):
                yield from part


def _can_fork() -> bool:
    # Without fork, a child imports the user's main module again, which fails for scripts without a __main__ guard.
    # A worker of another pool is not allowed to have children.
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


_function: Callable[[Any], Any]


def _adopt(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function


def _run(items: Sequence[Any]) -> list[Any]:
    return [_function(item) for item in items]
