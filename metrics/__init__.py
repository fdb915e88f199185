"""The benchmarks' scores as ``evaluate`` metrics: a folder per metric, with module, card and Space."""

from __future__ import annotations

import functools
import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from qabench.benchmarks.outside import outside_error
from qabench.loading_scripts import custom_folders


def metric_folders() -> dict[str, Path]:
    """Return the folders of all metrics by name, including those of benchmarks from outside."""
    parents = [Path(__file__).parent]
    for folder in custom_folders().values():
        parents.append(folder / "metrics")
    folders: dict[str, Path] = {}
    # This package's folder is read last, so that no outside metric replaces a metric of the package.
    for parent in reversed(parents):
        if not os.path.isdir(parent):
            continue
        for path in parent.glob("*/*.py"):
            if path.stem == path.parent.name and os.path.isfile(path):
                folders[path.stem] = path.parent
    return folders


def metric_names() -> list[str]:
    """Return the names of all metrics, sorted."""
    return sorted(metric_folders())


def metric_folder(name: str) -> Path:
    """Return the folder of a metric."""
    return metric_folders()[name]


@functools.cache
def metric_module(name: str) -> ModuleType:
    """Import and return the module of a metric."""
    spec = spec_from_file_location(f"{__name__}.{name}.{name}", metric_folder(name) / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"the metric {name} cannot be imported")
    module = module_from_spec(spec)
    folder = metric_folder(name)
    if folder.parent == Path(__file__).parent:
        spec.loader.exec_module(module)
        return module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Code from outside may raise anything, including SystemExit.
        raise outside_error(f"the metric {name} cannot be imported", error, folder) from error
    return module


def metric_class(name: str) -> Any:
    """Return the class of a metric, a subclass of ``MetricModule``."""
    kinds = [kind for kind in vars(metric_module(name)).values() if isinstance(kind, type)]
    return next(kind for kind in kinds if {"BENCHMARK", "DESCRIPTION"} <= vars(kind).keys())
