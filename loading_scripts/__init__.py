"""The benchmarks as datasets, one folder per benchmark.

A folder contains ``sources.json`` (the upstream files, pinned by digest), ``configs.json`` (the
files of each config and split), the builder ``NAME.py``, the dataset card ``README.md`` and a
sample. A benchmark outside of this package has the same files in one folder with its code. If its
rows are on the Hub, the attribute ``data`` of its class replaces the tables. This module finds the
folders, reads the tables, and does not import ``datasets``.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from qabench.data.pinned import HubDataset, SourceFile, load_table
from qabench.data.rows import read_json
from qabench.data.sources import local_path
from qabench.errors import InputError, check_name, unknown_name, unreadable
from qabench.io.tables import printable

FOLDER = Path(__file__).parent
TABLE = "configs.json"
PATH_VARIABLE = "QABENCH_PATH"
ENTRY_POINTS = "qabench.benchmarks"
LEADERBOARD = "leaderboard"  # the name of a config with published scores
# the prefix of a file that is in the benchmark's folder here, not in the upstream repository
SHIPPED = "./"
HUB_CONFIG = "questions"  # the config of a benchmark whose rows are on the Hub
_INSTANCE = re.compile(rb"^BENCHMARK\b", re.MULTILINE)
MAX_CODE = 10_000_000  # bytes of a module that are searched for ``BENCHMARK``


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration of a benchmark: its splits, each with its files."""

    name: str
    description: str
    splits: Mapping[str, Sequence[str]]

    @property
    def files(self) -> list[str]:
        """Return the upstream files of all splits, in order, without duplicates, or none if they ship with qabench."""
        paths = (path for files in self.splits.values() for path in files)
        return list(dict.fromkeys(path for path in paths if not path.startswith(SHIPPED)))


@dataclass(frozen=True, slots=True)
class DatasetTable:
    """The content of a benchmark's ``configs.json``: its title, its default config and its configs by name.

    ``restriction`` says why rows of the upstream files must not be published. None if they may be.
    """

    name: str
    title: str
    default: str
    configs: dict[str, Config]
    restriction: str | None = None

    def config(self, name: str | None) -> Config:
        """Return the config of that name, or the default one.

        Raises InputError that lists the allowed names.
        """
        name = name or self.default
        check_name(f"{self.name} has no config", name, self.configs)
        return self.configs[name]


def custom_folders() -> dict[str, Path]:
    """Return the folders of benchmarks outside of this package, by name. Imports none of them.

    These are the folders ``DIR/NAME`` whose ``__init__.py`` defines ``BENCHMARK``, for each DIR in
    ``QABENCH_PATH``, and the packages with an entry point of the group ``qabench.benchmarks``. The
    names of this package's benchmarks cannot be replaced.
    """
    return _custom_folders(os.environ.get(PATH_VARIABLE, ""))


@functools.cache
def _custom_folders(path: str) -> dict[str, Path]:
    folders = {}
    for entry_point in entry_points(group=ENTRY_POINTS):
        if folder := _package_folder(entry_point):
            folders[entry_point.name] = folder
    for directory in filter(None, path.split(os.pathsep)):
        for folder in _benchmarks_in(Path(directory).absolute()):
            folders[folder.name] = folder
    return {name: folder for name, folder in folders.items() if not (FOLDER / name / TABLE).is_file()}


def _package_folder(entry_point: EntryPoint) -> Path | None:
    """Return the folder of an entry point's package, or None if there is none."""
    top, *submodules = entry_point.value.partition(":")[0].strip().split(".")
    try:
        spec = find_spec(top)  # ``find_spec`` of a submodule would import the packages above it
    except Exception:  # import hooks of other packages may raise anything
        return None
    locations = (spec and spec.submodule_search_locations) or ()
    folders = [Path(location, *submodules) for location in locations]
    return next(filter(os.path.isdir, folders), None)


def _benchmarks_in(directory: Path) -> Iterator[Path]:
    """Yield the folders of a directory that are benchmarks, also those whose code cannot be read."""
    try:
        folders = sorted(filter(os.path.isdir, directory.iterdir()))
    except OSError:  # not a directory, or no permission
        return
    for folder in folders:
        try:
            text = _code(folder / "__init__.py")
        except FileNotFoundError:
            continue
        except OSError:  # importing it says why
            yield folder
        else:
            if _INSTANCE.search(text):
                yield folder


def _code(file: Path) -> bytes:
    """Return the text of a module. Raises OSError for anything but a regular file: a fifo would wait for a writer."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(f"{file} is not a regular file")
    with file.open("rb") as opened:
        return opened.read(MAX_CODE)


def shipped_names() -> list[str]:
    """Return the names of the benchmarks of this package, sorted."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{TABLE}"))


def benchmark_names() -> list[str]:
    """Return the names of all benchmarks, sorted."""
    return sorted([*shipped_names(), *custom_folders()])


def usable_names() -> list[str]:
    """Return the names of all benchmarks whose tables can be read, sorted. Warns about each of the others.

    For commands that work on all benchmarks unless some are named.
    """
    names = []
    for name in benchmark_names():
        try:
            source_table(name)
            dataset_table(name)
        except InputError as error:
            if name in shipped_names():
                raise
            warnings.warn(f"left out: {error}", stacklevel=2)
        else:
            names.append(name)
    return names


def folder_of(name: str) -> Path:
    """Return the folder with a benchmark's tables, card and shipped data.

    Raises InputError that lists all names.
    """
    name = name.removeprefix("qabench/")
    if name not in (names := benchmark_names()):
        where = f"{', '.join(names)}, or one in a folder of {PATH_VARIABLE}"
        raise unknown_name("unknown benchmark", name, names, where)
    return custom_folders().get(name, FOLDER / name)


def dataset_table(name: str) -> DatasetTable:
    """Return the table of a benchmark, such as "fanoutqa" or "qabench/fanoutqa".

    Raises InputError that lists all.
    """
    return _dataset_table(name.removeprefix("qabench/"), folder_of(name))


@functools.cache
def custom_benchmark(name: str, folder: Path) -> Any:
    """Import the package of a benchmark outside of this package, and return its ``BENCHMARK``.

    Its module has a name outside of ``qabench``, so that it replaces none of qabench's modules.

    Raises InputError if it cannot be imported, or if there is no such instance of this name.
    """
    module, file = custom_module(name), folder / "__init__.py"
    spec = spec_from_file_location(module, file, submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    _forget(module)
    try:
        _code(file)
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
    except BaseException as error:  # code from outside may raise anything, also SystemExit
        _forget(module)
        if isinstance(error, InputError):
            raise
        raise outside_error(f"the benchmark {name} cannot be imported", error, folder) from error
    return instance


def custom_module(name: str) -> str:
    """Return the name of the module of a benchmark outside of this package."""
    return f"qabench_outside_{name}"


def _forget(module: str) -> None:
    """Remove a package and its submodules, which may be from another folder, from the imported modules."""
    for each in [each for each in sys.modules if each == module or each.startswith(f"{module}.")]:
        del sys.modules[each]


def outside_error(what: str, error: BaseException, folder: Path) -> InputError:
    """Return the error for an exception in code from outside, with the last line of the folder that it passed."""
    reason = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    places = _lines_in(folder, error)
    return InputError(printable(f"{what}: {reason} ({places[-1] if places else folder})"))


def raised_outside(error: BaseException) -> InputError | None:
    """Return the error for an exception that passed the code of a benchmark from outside, or None if it did not."""
    for name, folder in custom_folders().items():
        if _lines_in(folder, error):
            return outside_error(f"the benchmark {name} failed", error, folder)
    return None


def _lines_in(folder: Path, error: BaseException) -> list[str]:
    """Return the files and lines of a folder that an exception passed, the last one last."""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    return [f"{file}, line {line}" for file, line in places if Path(file).is_relative_to(folder)]


def hub_dataset(name: str) -> HubDataset | None:
    """Return where the rows of a benchmark are on the Hub, or None if it has files."""
    folder = folder_of(name)
    return None if (folder / TABLE).is_file() else custom_benchmark(name, folder).data


@functools.cache
def _dataset_table(name: str, folder: Path) -> DatasetTable:
    if data := hub_dataset(name):
        about = f"the split {data.split} of {data.path} on the Hub"
        config = Config(HUB_CONFIG, about, {data.split: (data.file(name).path,)})
        title = custom_benchmark(name, folder).title
        return DatasetTable(name, title, HUB_CONFIG, {HUB_CONFIG: config})
    table = read_json(folder / TABLE)
    configs = {
        config: Config(config, row["description"], row["splits"])
        for config, row in table["configs"].items()
    }
    check_name(f"{folder / TABLE}: the default config is", table["default"], configs)
    return DatasetTable(name, table["title"], table["default"], configs, table.get("restriction"))


def citation(name: str) -> str:
    """Return how to cite a benchmark, in BibTeX, or "" if it does not say."""
    path = folder_of(name) / "citation.bib"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@functools.cache
def source_table(name: str) -> dict[str, SourceFile]:
    """Return a benchmark's upstream files by path.

    Empty if all its files are shipped.
    """
    if data := hub_dataset(name):
        file = data.file(name)
        return {file.path: file}
    path = folder_of(name) / "sources.json"
    return load_table(path, name) if path.is_file() else {}


def _source(name: str, path: str) -> SourceFile:
    """Return an upstream file. Raises InputError, which names the most similar path."""
    if path not in (table := source_table(name)):
        allowed = "the paths in its sources.json, or ./ and a file beside it"
        raise unknown_name(f"{name} has no source file", path, table, allowed)
    return table[path]


def open_path(name: str, path: str) -> Path:
    """Return a verified local path of a file of ``configs.json``.

    Raises SourceError if an upstream file is not available, or is not the pinned one.
    """
    if path.startswith(SHIPPED):
        return folder_of(name) / path
    return local_path(_source(name, path))


def file_digest(name: str, path: str) -> str:
    """Return twelve hex digits of the digest of a file's pinned content, for signatures and cache keys."""
    source = None if path.startswith(SHIPPED) else _source(name, path)
    pinned = source and (source.sha256 or source.git_blob_sha1)
    return pinned[:12] if pinned else custom_digest(open_path(name, path))


def pinned_digests(name: str, *configs: str) -> Callable[[str], bool]:
    """Return a function that tells whether a digest is of an upstream file of the configs, or of all configs."""

    def is_pinned(digest: str) -> bool:
        """Tell whether a digest is of a file of the dataset."""
        table = dataset_table(name)
        files = {file for config in configs or table.configs for file in table.config(config).files}
        return digest in {file_digest(name, file) for file in files}

    return is_pinned


def custom_digest(path: Path) -> str:
    """Return the digest of a custom file of questions. Raises InputError if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise unreadable(f"the questions {path}", error) from None
