"""The entry point of Inspect AI: the tasks, solvers and scorers of all benchmarks."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import qabench.benchmarks
from qabench.benchmarks import benchmark_names

REGISTERED = "__registry_info__"  # the attribute that Inspect's decorators set
COMMANDS = "commands"  # the module of a benchmark's specific commands, in a layer above this one


def _registered() -> dict[str, Any]:
    """All registered objects that the modules of the benchmarks' packages define, by name."""
    found: dict[str, Any] = {}
    for name in benchmark_names():
        package = importlib.import_module(f"{qabench.benchmarks.__name__}.{name}")
        for module in pkgutil.iter_modules(package.__path__):
            if module.ispkg or module.name == COMMANDS:
                continue
            full = f"{package.__name__}.{module.name}"
            members = vars(importlib.import_module(full))
            found |= {
                key: value
                for key, value in members.items()
                if hasattr(value, REGISTERED) and getattr(value, "__module__", None) == full
            }
    return found


globals().update(_registered())
