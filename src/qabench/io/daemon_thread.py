"""Blocking functions in threads that an interrupted run does not wait for."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import current_token

from qabench.io.workers import run_job

Out = TypeVar("Out")


async def in_daemon_thread(function: Callable[..., Out], *arguments: Any) -> Out:
    """Await a blocking function in a daemon thread, so that an interrupted run need not wait.

    This works like ``anyio.to_thread.run_sync(..., abandon_on_cancel=True)``, except that the
    process can end before the thread does.
    """
    future: Future[Out] = Future()
    done, token, context = anyio.Event(), current_token(), contextvars.copy_context()

    def work() -> None:
        run_job(future, lambda: context.run(function, *arguments))
        with contextlib.suppress(RuntimeError):
            # After an interrupt of the run, the event loop is closed, so nobody waits for the
            # result.
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=work, name="qabench-request", daemon=True).start()
    await done.wait()
    return future.result()
