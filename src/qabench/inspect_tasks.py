"""The entry point of Inspect AI: imports the tasks of all benchmarks, which registers them."""

from __future__ import annotations

import warnings

from qabench.benchmarks import benchmark, benchmark_names

for name in benchmark_names():
    try:
        benchmark(name).tasks()
    except Exception as error:  # the tasks of the other benchmarks work
        warnings.warn(
            f"the tasks of {name} cannot be imported: {type(error).__name__}: {error}", stacklevel=1
        )
