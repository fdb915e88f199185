"""The entry point for Inspect AI: registers the tasks of all benchmarks."""

from __future__ import annotations

import sys
import warnings

from qabench.adapters.inspect_ai.tasks import inspect_tasks
from qabench.benchmarks import benchmark, benchmark_names

# Inspect also loads this module in qabench's commands, which register their benchmark themselves.
is_command = getattr(sys.modules.get("qabench.cli"), "is_command", False)
for name in [] if is_command else benchmark_names():
    try:
        inspect_tasks(benchmark(name))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A benchmark from outside may raise anything, including SystemExit. The other
        # benchmarks still work.
        warnings.warn(
            f"the tasks of {name} cannot be imported: {type(error).__name__}: {error}", stacklevel=1
        )
