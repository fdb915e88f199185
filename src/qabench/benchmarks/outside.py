"""Import the code of benchmarks outside of this package, and report its errors in one line."""

from __future__ import annotations

import functools
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.io.redaction import printable
from qabench.loading_scripts.folders import code_of, custom_folders


@functools.cache
def custom_benchmark(name: str, folder: Path) -> Any:
    """Import the package of a benchmark outside of this package, and return its ``BENCHMARK``.

    The package's name in ``sys.modules`` is outside of ``qabench``, so it cannot replace one of
    qabench's modules.

    Raises:
        InputError: the package cannot be imported, or its ``BENCHMARK`` is missing, has another
            name, or declares something wrong.
    """
    module, file = custom_module(name), folder / "__init__.py"
    spec = spec_from_file_location(module, file, submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    # ``sys.modules`` may contain submodules of another folder with the same name, or of a failed
    # import, which must not be used.
    _forget(module)
    try:
        # ``code_of`` raises an error if the file is not regular: importing a FIFO could wait
        # forever.
        code_of(file)
        sys.modules[module] = package = module_from_spec(spec)
        spec.loader.exec_module(package)
        instance: Any = getattr(package, "BENCHMARK", None)
        if getattr(instance, "name", None) != name:
            raise InputError(f"{file} has no BENCHMARK with the name {name!r}")
        if not hasattr(instance, "check_declared"):
            raise InputError(f"{file}: BENCHMARK is not an instance of a subclass of Benchmark")
        instance.check_declared(file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Code from outside may raise anything, including SystemExit.
        _forget(module)
        if isinstance(error, InputError):
            raise
        raise outside_error(f"the benchmark {name} cannot be imported", error, folder) from error
    return instance


def custom_module(name: str) -> str:
    """Return the name of the module of a benchmark outside of this package."""
    return f"qabench_outside_{name}"


def _forget(module: str) -> None:
    """Remove a package and its submodules, which may be from another folder, from sys.modules."""
    for name in list(sys.modules):
        if name == module or name.startswith(f"{module}."):
            del sys.modules[name]


def outside_error(what: str, error: BaseException, folder: Path) -> InputError:
    """Return the error for an exception in code from outside, with the line in ``folder``."""
    reason = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    location = str(folder)
    for line in _lines_in(folder, error):
        # Later frames are deeper, so the last one is where the error was raised.
        location = line
    return InputError(printable(f"{what}: {reason} ({location})"))


def raised_outside(error: BaseException) -> InputError | None:
    """Return the error for an exception in a benchmark from outside, or None for other exceptions."""
    for name, folder in custom_folders().items():
        if _lines_in(folder, error):
            return outside_error(f"the benchmark {name} failed", error, folder)
    return None


def _lines_in(folder: Path, error: BaseException) -> list[str]:
    """Return the lines of the traceback that are in files of a folder, the deepest last."""
    frames = traceback.extract_tb(error.__traceback__)
    positions: list[tuple[str, int | None]] = [(frame.filename, frame.lineno) for frame in frames]
    # A file with a syntax error has no frame in the traceback, but the error contains the line.
    if isinstance(error, SyntaxError) and error.filename:
        positions.append((error.filename, error.lineno))
    lines = []
    for file, line in positions:
        if Path(file).is_relative_to(folder):
            lines.append(f"{file}, line {line}")
    return lines
