"""Runs coroutines from synchronous code, including notebooks, where an event loop is already running."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of ``work``. Ctrl-C cancels it, waits for its cleanup, and raises KeyboardInterrupt."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _run_in_thread(work)


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    # An event loop cannot run inside another one in the same thread.
    result: Future[T] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        if task is not None:
            running.append((asyncio.get_running_loop(), task))
        return await work

    def thread_main() -> None:
        try:
            result.set_result(asyncio.run(main()))
        except BaseException as error:
            result.set_exception(error)

    thread = threading.Thread(target=thread_main, name="qabench-llm")
    thread.start()
    try:
        return result.result()
    except KeyboardInterrupt:
        for loop, task in running:
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
