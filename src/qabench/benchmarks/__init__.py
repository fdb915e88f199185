"""The benchmarks. Each is a package with a subclass of ``Benchmark`` and its instance ``BENCHMARK``.

A package has everything specific to its benchmark except the data (``loading_scripts/NAME``) and
the metric modules (``metrics/NAME``).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.declared import Leaderboards, Need, Option, Setting
from qabench.benchmarks.outside import custom_benchmark
from qabench.data.pinned import HubDataset
from qabench.errors import InputError
from qabench.evaluation.score_spec import ScoreSpec
from qabench.loading_scripts import (
    benchmark_names,
    custom_folders,
    folder_of,
    shipped_names,
    take_declarations_from,
)

__all__ = [
    "OTHER_TASK",
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
    """Any task in a log of another harness. No score is official. The task's name is the config."""

    name = ""
    title = "Task"
    settings = ()
    scores: ClassVar[tuple[ScoreSpec, ...]] = ()
    groups: ClassVar[Mapping[str, str]] = {}


OTHER_TASK = OtherTask()


def benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name.

    Args:
        name: the benchmark's name, such as "fanoutqa" or "qabench/fanoutqa", or "" for a task of
            another harness.

    Raises:
        InputError: the benchmark does not exist.
    """
    if not name:
        return OTHER_TASK
    return _benchmark(name.removeprefix("qabench/"), folder_of(name))


def search_order() -> Iterator[Benchmark]:
    """Yield the benchmarks of this package, then those from outside that can be imported.

    This is a generator, so that a caller who stops at a benchmark of this package does not import
    benchmarks from outside.
    """
    yield from map(benchmark, shipped_names())
    for name in sorted(custom_folders()):
        try:
            yield benchmark(name)
        except InputError:
            # A benchmark that cannot be imported is reported when the user names it.
            continue


# The folder is part of the cache's key, because QABENCH_PATH can change.
@functools.cache
def _benchmark(name: str, folder: Path) -> Benchmark:
    if name in custom_folders():
        # ``custom_benchmark`` imports the code from outside.
        instance: Benchmark = custom_benchmark(name, folder)
    else:
        instance = importlib.import_module(f"{__name__}.{name}").BENCHMARK
    return instance


def _hub_dataset(name: str, folder: Path) -> tuple[str, HubDataset | None]:
    """Return the title of a benchmark from outside, and its dataset on the Hub if it has one."""
    instance = custom_benchmark(name, folder)
    return instance.title, instance.data


take_declarations_from(_hub_dataset)
