"""The scores as ``evaluate`` metrics, one folder each: the module, its card, and its Space."""

from __future__ import annotations

import functools
import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from qabench.loading_scripts import custom_folders, outside_error


def metric_folders() -> dict[str, Path]:
    """Return the folders of all metrics by name: those here, and ``metrics/NAME`` of benchmarks outside of qabench."""
    parents = [Path(__file__).parent, *(folder / "metrics" for folder in custom_folders().values())]
    readable = filter(os.path.isdir, reversed(parents))
    paths = [path for parent in readable for path in parent.glob("*/*.py")]
    return {
        path.stem: path.parent
        for path in paths
        if path.stem == path.parent.name and os.path.isfile(path)
    }


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
    except BaseException as error:  # code from outside may raise anything, also SystemExit
        raise outside_error(f"the metric {name} cannot be imported", error, folder) from error
    return module


def metric_class(name: str) -> Any:
    """Return the class of a metric, a subclass of ``MetricModule``."""
    kinds = [kind for kind in vars(metric_module(name)).values() if isinstance(kind, type)]
    return next(kind for kind in kinds if "BENCHMARK" in vars(kind))
