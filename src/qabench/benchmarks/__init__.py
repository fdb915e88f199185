"""The benchmarks: one package per benchmark, which defines a subclass of ``Benchmark`` and its instance ``BENCHMARK``.

A package has everything specific to its benchmark except the data (``loading_scripts/NAME``) and
the metric modules (``metrics/NAME``).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from qabench.benchmarks.base import Benchmark, Leaderboards, Need, Option, Setting
from qabench.data.pinned import HubDataset
from qabench.errors import InputError
from qabench.evaluation.score_spec import ScoreSpec
from qabench.loading_scripts import (
    benchmark_names,
    custom_benchmark,
    custom_folders,
    folder_of,
    shipped_names,
)

__all__ = [
    "Benchmark",
    "HubDataset",
    "Leaderboards",
    "Need",
    "Option",
    "Setting",
    "benchmark",
    "benchmark_names",
    "search_order",
    "shipped_names",
]


class OtherTask(Benchmark):
    """Any task in a log of another harness: it has no official scores, and its name is the config."""

    name = ""
    title = "Task"
    settings = ()
    scores: ClassVar[tuple[ScoreSpec, ...]] = ()
    groups: ClassVar[Mapping[str, str]] = {}


_OTHER = OtherTask()


def benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name.

    Args:
        name: such as "fanoutqa", or its Hub name "qabench/fanoutqa", or "" for a task that is not a
            benchmark's.

    Raises:
        InputError: the benchmark does not exist.
    """
    if not name:
        return _OTHER
    return _benchmark(name.removeprefix("qabench/"), folder_of(name))


def search_order() -> Iterator[Benchmark]:
    """Yield the benchmarks of this package, then those from outside that can be imported, one at a time.

    Whoever finds what it looks for in the former imports none of the latter.
    """
    yield from map(benchmark, shipped_names())
    for name in sorted(custom_folders()):
        try:
            yield benchmark(name)
        except InputError:  # a broken one is named where it is asked for
            continue


@functools.cache
def _benchmark(name: str, folder: Path) -> Benchmark:
    if name in custom_folders():  # the only place where code of a benchmark from outside is imported
        instance: Benchmark = custom_benchmark(name, folder)
    else:
        instance = importlib.import_module(f"{__name__}.{name}").BENCHMARK
    return instance
