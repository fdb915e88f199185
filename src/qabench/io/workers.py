"""Parallel work: forked processes, stateful functions on a cluster, and coroutines."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, Protocol, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    # macOS and Windows do not restrict processes.
    return os.cpu_count() or 1


def most_workers() -> int:
    """Return the number of processes to use: 1 if forking is not safe, else one per processor."""
    return processors() if _can_fork() else 1


def iterate_parallel(
    function: Callable[[In], Out], items: Sequence[In], workers: int
) -> Iterator[Out]:
    """Yield ``function(item)`` for each item in order, computed in forked processes.

    Each result is yielded as soon as possible. The processes inherit the function, so it need not
    be picklable. With one worker, or if forking is not safe, everything is computed in this
    process.

    Raises:
        BrokenProcessPool: a process was killed.
    """
    if min(workers, len(items)) <= 1 or not _can_fork():
        yield from map(function, items)
        return
    with warnings.catch_warnings():
        # Python warns about forking a process with threads. The children do not use locks of other
        # threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        # This executor, unlike multiprocessing.Pool, notices when a worker is killed.
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(
            workers, context, initializer=_adopt, initargs=(function,)
        ) as executor:
            yield from executor.map(_run, items)


def _can_fork() -> bool:
    # Without fork, a child imports the user's main module again, which fails for scripts without a
    # __main__ guard. A worker of another pool is not allowed to have children.
    safe = sys.platform == "linux" and not multiprocessing.current_process().daemon
    return safe and not _forks_forbidden


_forks_forbidden = False


def forbid_forks() -> None:
    """Make ``iterate_parallel`` compute everything in this process from now on."""
    global _forks_forbidden
    _forks_forbidden = True


_function: Callable[[Any], Any]


def _adopt(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent is killed. Otherwise, it would wait for tasks forever."""
    if parent := multiprocessing.parent_process():
        parent.join()
    os._exit(1)


def _run(item: Any) -> Any:
    return _function(item)


def run_job(future: Future[Any], job: Callable[[], Any]) -> None:
    """Run a job unless it was cancelled, and set its result or exception."""
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(job())
        except BaseException as error:
            future.set_exception(error)


def run_sync(work: Coroutine[Any, Any, Out]) -> Out:
    """Run a coroutine, even in a notebook's event loop. Return its result. Ctrl-C cancels it."""
    import asyncio

    is_running = True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # The work runs after this block. Otherwise, this error would be the context of all its
        # errors.
        is_running = False
    if not is_running:
        return asyncio.run(work)
    # An event loop cannot run inside another one in the same thread.
    with closing(asyncio.new_event_loop()) as loop, ThreadPoolExecutor(1) as thread:
        task = loop.create_task(work)
        try:
            return thread.submit(loop.run_until_complete, task).result()
        except KeyboardInterrupt:
            loop.call_soon_threadsafe(task.cancel)
            raise


Load = Callable[[], Callable[[In], Out]]


class Workers(Protocol):
    """Processes on one or several machines (see ``qabench.cluster.Cluster``)."""

    workers: int
    num_gpus: float

    def map(self, load: Load[In, Out], inputs: Iterable[In], gpu: bool) -> Iterator[Out]:
        """Return results as ``map_loaded`` does. ``load``, inputs and results must be picklable."""


_in_use: Workers | None = None


def cluster() -> Workers | None:
    """Return the cluster in use, or None if everything runs in this process."""
    return _in_use


@contextmanager
def using(workers: Workers) -> Iterator[None]:
    """Make ``map_loaded`` run on these workers within the block."""
    global _in_use
    before, _in_use = _in_use, workers
    try:
        yield
    finally:
        _in_use = before


def map_loaded(load: Load[In, Out], inputs: Iterable[In], gpu: bool = False) -> Iterator[Out]:
    """Return the results of a function for each input, in order.

    ``load`` is called once in this process, or once in each process of the cluster in use, and
    returns the function. Each input should be work for a second or more, because inputs are sent to
    processes one by one. With ``gpu``, the workers' GPUs are used.
    """
    if _in_use is None:
        return map(load(), inputs)
    return _in_use.map(load, inputs, gpu)
