"""The folders of benchmarks, from this package, ``QABENCH_PATH`` and entry points."""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from qabench.errors import unknown_name

FOLDER = Path(__file__).parent
TABLE = "configs.json"
PATH_VARIABLE = "QABENCH_PATH"
ENTRY_POINTS = "qabench.benchmarks"
# At most this many bytes of a module are searched for ``BENCHMARK``.
MAX_CODE = 10_000_000
# A benchmark is found by this line of its module: importing the module would run code from outside.
_INSTANCE = re.compile(rb"^BENCHMARK\b", re.MULTILINE)


def folder_of(name: str) -> Path:
    """Return the folder with a benchmark's tables, card and shipped data.

    Raises:
        InputError: an unknown name. The message lists all benchmarks.
    """
    name = name.removeprefix("qabench/")
    folder = shipped_folders().get(name) or custom_folders().get(name)
    if folder is None:
        names = benchmark_names()
        where = f"{', '.join(names)}, or one in a folder of {PATH_VARIABLE}"
        raise unknown_name("unknown benchmark", name, names, where)
    return folder


def benchmark_names() -> list[str]:
    """Return the names of all benchmarks, sorted."""
    return sorted([*shipped_folders(), *custom_folders()])


def shipped_names() -> list[str]:
    """Return the names of the benchmarks of this package, sorted."""
    return list(shipped_folders())


@functools.cache
def shipped_folders() -> Mapping[str, Path]:
    """Return the folders of the benchmarks of this package, by name."""
    folders = [table.parent for table in FOLDER.glob(f"*/{TABLE}")]
    return {folder.name: folder for folder in sorted(folders)}


def custom_folders() -> Mapping[str, Path]:
    """Return the folders of benchmarks outside of this package, by name. Imports none of them.

    These are the folders ``DIR/NAME`` whose ``__init__.py`` defines ``BENCHMARK``, for each DIR in
    ``QABENCH_PATH``, and the packages with an entry point of the group ``qabench.benchmarks``. A
    folder with the name of one of this package's benchmarks is ignored.
    """
    return _custom_folders(os.environ.get(PATH_VARIABLE, ""))


@functools.cache
def _custom_folders(path: str) -> Mapping[str, Path]:
    folders = {}
    for entry_point in entry_points(group=ENTRY_POINTS):
        if folder := _package_folder(entry_point):
            folders[entry_point.name] = folder
    for directory in filter(None, path.split(os.pathsep)):
        for folder in _benchmarks_in(Path(directory).absolute()):
            folders[folder.name] = folder
    for name in shipped_folders():
        folders.pop(name, None)
    return folders


def _package_folder(entry_point: EntryPoint) -> Path | None:
    """Return the folder of an entry point's package, or None if it does not exist."""
    top, *submodules = entry_point.value.partition(":")[0].strip().split(".")
    try:
        # ``find_spec`` of a submodule would import the packages above it.
        spec = find_spec(top)
    except Exception:
        # Import hooks of other packages may raise anything.
        return None
    locations = (spec and spec.submodule_search_locations) or ()
    folders = [Path(location, *submodules) for location in locations]
    return next(filter(os.path.isdir, folders), None)


def _benchmarks_in(directory: Path) -> Iterator[Path]:
    """Yield the folders of benchmarks in a directory, and folders whose code cannot be read."""
    try:
        folders = sorted(filter(os.path.isdir, directory.iterdir()))
    except OSError:
        # The path is not a directory, or cannot be read.
        return
    for folder in folders:
        try:
            text = code_of(folder / "__init__.py")
        except FileNotFoundError:
            continue
        except OSError:
            # Importing the benchmark later raises the error with the reason.
            yield folder
        else:
            if _INSTANCE.search(text):
                yield folder


def code_of(file: Path) -> bytes:
    """Return the code of a module, at most ``MAX_CODE`` bytes.

    Raises:
        OSError: the file is not a regular one. (Opening a FIFO would wait for a writer.)
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(f"{file} is not a regular file")
    with file.open("rb") as opened:
        return opened.read(MAX_CODE)
