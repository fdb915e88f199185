"""Threads that do not keep a process alive: after Ctrl-C, nothing waits for slow servers.

The threads of ``concurrent.futures`` and anyio are joined at exit, so that an interrupted program would first finish
all requests in its queues.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")
_Job = tuple[Future[Any], Callable[[], Any]]


class DaemonPool:
    """A pool of daemon threads. What they do must be safe to abandon at any point, such as requests.

    Args:
        threads: their number.
        name: the prefix of their names.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[[In], Out], item: In) -> Future[Out]:
        """The future result of ``function(item)``."""
        future: Future[Out] = Future()
        self._jobs.put((future, lambda: function(item)))
        return future

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> list[Out]:
        """The results, in the order of the items; the first exception is raised."""
        return [future.result() for future in [self.submit(function, item) for item in items]]

    def close(self) -> None:
        """Ends the threads after the jobs in the queue, without waiting for them."""
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            run_job(*job)


def run_job(future: Future[Any], job: Callable[[], Any]) -> None:
    """Runs a job unless it was cancelled, and sets its result or exception."""
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(job())
        except BaseException as error:
            future.set_exception(error)
