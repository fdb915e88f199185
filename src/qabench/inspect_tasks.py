"""The entry point of Inspect AI: imports the tasks of all benchmarks, which registers them."""

from __future__ import annotations

import sys
import warnings

from qabench.benchmarks import benchmark, benchmark_names, shipped_names

# Inspect loads this module also in a command of qabench, which imports the benchmark that it names itself.
for name in shipped_names() if "qabench.cli" in sys.modules else benchmark_names():
    try:
        benchmark(name).tasks()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of a benchmark from outside, also SystemExit: the others work
        warnings.warn(
            f"the tasks of {name} cannot be imported: {type(error).__name__}: {error}", stacklevel=1
        )
