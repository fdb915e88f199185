"""The benchmarks: one package per benchmark, which defines a subclass of ``Benchmark`` and its instance ``BENCHMARK``.

A package has everything specific to its benchmark except the data (``loading_scripts/NAME``) and the metric modules
(``metrics/NAME``).
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from qabench.benchmarks.base import Benchmark, Need, Option, Setting
from qabench.errors import unknown_name

__all__ = ["Benchmark", "Need", "Option", "Setting", "benchmark", "benchmark_names"]


@functools.cache
def benchmark_names() -> list[str]:
    """Return the names of all benchmarks, sorted: the packages in this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


@functools.cache
def benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name.

    Args:
        name: such as "fanoutqa", or its Hub name "qabench/fanoutqa".

    Raises:
        InputError: the benchmark does not exist.
    """
    name = name.removeprefix("qabench/")
    if name not in benchmark_names():
        raise unknown_name("unknown benchmark", name, benchmark_names())
    instance: Benchmark = importlib.import_module(f"{__name__}.{name}").BENCHMARK
    return instance
