"""Functions with a state, such as a model, over many inputs: in this process, or on a cluster.

Computations call ``map_loaded`` and do not know what a cluster is; ``qabench.scale.Cluster`` is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

from qabench.processes import iterate_parallel, most_workers

In = TypeVar("In")
Out = TypeVar("Out")
Load = Callable[[], Callable[[In], Out]]


class Workers(Protocol):
    """Processes on one or several machines.

    Attributes:
        workers: the number of processes for work without a GPU.
        num_gpus: the GPUs of each process that runs a network; 0 for none, below 1 to share one.
    """

    workers: int
    num_gpus: float

    def map(self, load: Load[In, Out], inputs: Iterable[In], gpu: bool) -> Iterator[Out]:
        """As ``map_loaded``; everything is picklable."""


_in_use: Workers | None = None


def cluster() -> Workers | None:
    """The cluster in use; None for this process."""
    return _in_use


@contextmanager
def using(workers: Workers) -> Iterator[None]:
    """Within the block, ``map_loaded`` runs on these workers."""
    global _in_use
    before, _in_use = _in_use, workers
    try:
        yield
    finally:
        _in_use = before


def map_loaded(load: Load[In, Out], inputs: Iterable[In], gpu: bool = False) -> Iterator[Out]:
    """The results of a function for each input, in order.

    Args:
        load: returns the function. Called once in this process, or once in each process of the cluster in use.
        inputs: each is work for a second or more, because it is sent to a process separately.
        gpu: whether the function runs on a GPU, if the workers have one.

    Raises:
        QabenchError: raised by the function, or processes were killed repeatedly.
    """
    if _in_use is None:
        return map(load(), inputs)
    return _in_use.map(load, inputs, gpu)


def map_parts(function: Callable[[In], Out], parts: Sequence[In], workers: int | None = None) -> Iterator[Out]:
    """The results of a function without a state, in order: on the cluster in use, or in forked processes.

    Args:
        function: picklable.
        parts: as the inputs of ``map_loaded``.
        workers: forked processes; None for one per processor.
    """
    if _in_use is None:
        return iterate_parallel(function, parts, workers or most_workers(), items_per_task=1)
    return _in_use.map(partial(constant, function), parts, False)


def constant(function: Callable[[In], Out]) -> Callable[[In], Out]:
    """The function. ``partial(constant, f)`` is the ``load`` of a function without a state."""
    return function
