"""The entry point of Inspect AI: imports the tasks of all benchmarks, which registers them."""

from __future__ import annotations

import importlib
import warnings

import qabench.benchmarks
from qabench.benchmarks import benchmark_names
from qabench.tasks.common import tasks_are_imported

for name in () if tasks_are_imported() else benchmark_names():
    try:
        importlib.import_module(f"{qabench.benchmarks.__name__}.{name}.tasks")
    except Exception as error:  # the tasks of the other benchmarks work
        warnings.warn(f"the tasks of {name} cannot be imported: {type(error).__name__}: {error}", stacklevel=1)
