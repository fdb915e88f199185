"""One process per device, each with its own copy of a network."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from typing import Any

from qabench.errors import QabenchError
from qabench.neural.models import ModelSource


class Workers:
    """Processes that apply a network to batches; a free one takes the next batch.

    Args:
        load: a class or function of a module, from a source to a function of a batch; called once in each process.
        source: the model; each process replaces its device.
        devices: one process for each.
    """

    def __init__(self, load: Callable[[ModelSource], Callable[[Any], Any]], source: ModelSource, devices: list[str]):
        # Not fork: CUDA does not work in a forked process.
        context = multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        for device in devices:
            queue.put(device)
        shared = devices.count("cpu")
        self._executor = ProcessPoolExecutor(len(devices), context, _start, (load, source, queue, shared))

    def map(self, batches: Sequence[Any]) -> Iterator[Any]:
        """Yield the results of the batches, in order.

        Raises:
            QabenchError: a process ended, for example for lack of memory.
        """
        try:
            yield from self._executor.map(_apply, batches)
        except BrokenProcessPool as error:
            raise QabenchError(
                f"a process with a copy of the model ended ({error}); if memory is short, use a smaller batch size, "
                "fewer devices, or bfloat16"
            ) from error

    def close(self) -> None:
        """End the processes, after the batches that they work on."""
        self._executor.shutdown(cancel_futures=True)


_function: Callable[[Any], Any]


def _start(
    load: Callable[[ModelSource], Callable[[Any], Any]], source: ModelSource, queue: Any, sharing_cpu: int
) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    global _function
    device = queue.get()
    if device == "cpu":
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // sharing_cpu))
    _function = load(replace(source, device=device))


def _apply(batch: Any) -> Any:
    return _function(batch)
