"""The benchmarks as datasets, one folder per benchmark.

A folder contains two tables, ``sources.json`` (the upstream files, pinned by digest) and
``configs.json`` (the files of each config and split). Beside them are the builder ``NAME.py``, the
dataset card ``README.md`` and a sample. A benchmark outside of this package has the same files in
one folder with its code. If its rows are on the Hub, the attribute ``data`` of its class replaces
the tables. This module reads the tables, and does not import ``datasets``.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qabench.data.pinned import HubDataset, SourceFile, load_table
from qabench.data.rows import read_json
from qabench.data.sources import local_path
from qabench.errors import InputError, check_name, unknown_name, unreadable
from qabench.loading_scripts.folders import (
    ENTRY_POINTS,
    FOLDER,
    PATH_VARIABLE,
    TABLE,
    benchmark_names,
    custom_folders,
    folder_of,
    shipped_names,
)

__all__ = [
    "ENTRY_POINTS",
    "FEATURES",
    "FOLDER",
    "JSON",
    "LEADERBOARD",
    "PATH_VARIABLE",
    "SHIPPED",
    "TABLE",
    "Config",
    "DatasetTable",
    "benchmark_names",
    "custom_digest",
    "custom_folders",
    "dataset_table",
    "folder_of",
    "pinned_digests",
    "shipped_names",
    "take_declarations_from",
    "usable_names",
]

FEATURES = "features.json"
# In ``features.json``, the type of a column that holds JSON text.
JSON = "json"
# The name of a config with published scores.
LEADERBOARD = "leaderboard"
# Files with this prefix are in the benchmark's folder here, not in the upstream repository.
SHIPPED = "./"
# The name of the only config of a benchmark whose rows are on the Hub.
HUB_CONFIG = "questions"


DeclarationReader = Callable[[str, Path], tuple[str, HubDataset | None]]
# Empty until ``qabench.benchmarks`` is imported, which registers one reader. This package cannot
# import ``qabench.benchmarks``, which imports this package to read data.
_readers: list[DeclarationReader] = []


@dataclass(frozen=True, slots=True)
class Config:
    """One config of a benchmark: its splits, each with its files."""

    name: str
    description: str
    splits: Mapping[str, Sequence[str]]

    @property
    def files(self) -> list[str]:
        """Return the upstream files of all splits, in order, without duplicates."""
        files: list[str] = []
        for paths in self.splits.values():
            for path in paths:
                if not path.startswith(SHIPPED) and path not in files:
                    files.append(path)
        return files


@dataclass(frozen=True)
class DatasetTable:
    """The data of a benchmark: its configs and their files, from the tables in its folder.

    Attributes:
        name: the benchmark's name.
        folder: where its tables, card and shipped data are.
        title: the name for readers, such as "FanOutQA".
        default: the name of the default config.
        configs: the configs by name.
        restriction: why rows of the upstream files must not be published, or None if they may be.
        data: where the rows are on the Hub, or None if there are files.
    """

    name: str
    folder: Path
    title: str
    default: str
    configs: dict[str, Config]
    restriction: str | None = None
    data: HubDataset | None = None

    def config(self, name: str | None) -> Config:
        """Return the config with this name, or the default config for None.

        Raises:
            InputError: an unknown name. The message lists the allowed ones.
        """
        name = name or self.default
        check_name(f"{self.name} has no config", name, self.configs)
        return self.configs[name]

    @functools.cached_property
    def sources(self) -> dict[str, SourceFile]:
        """Return the upstream files by path. Empty if all files are shipped."""
        if self.data:
            file = self.data.file(self.name)
            return {file.path: file}
        path = self.folder / "sources.json"
        return load_table(path, self.name) if path.is_file() else {}

    @property
    def json_columns(self) -> list[str]:
        """Return the columns of the default config that are JSON text written by ``dumps``."""
        path = self.folder / FEATURES
        if not path.is_file():
            return []
        columns = read_json(path)[self.default]
        return [name for name, kind in columns.items() if kind == JSON]

    @property
    def citation(self) -> str:
        """Return the benchmark's BibTeX entry, or "" without a ``citation.bib``."""
        path = self.folder / "citation.bib"
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def open_path(self, path: str) -> Path:
        """Return the local path of a file of ``configs.json``. Upstream files are verified.

        Raises:
            SourceError: an upstream file is not available, or is not the pinned one.
        """
        if path.startswith(SHIPPED):
            return self.folder / path
        return local_path(self._source(path))

    def file_digest(self, path: str) -> str:
        """Return the first twelve hex digits of a file's digest, for signatures."""
        if not path.startswith(SHIPPED):
            # The pinned digest of an upstream file is known without the file.
            source = self._source(path)
            if pinned := source.sha256 or source.git_blob_sha1:
                return pinned[:12]
        return custom_digest(self.open_path(path))

    def _source(self, path: str) -> SourceFile:
        """Return the upstream file of a path. For an unknown path, the error suggests another."""
        if path not in self.sources:
            allowed = "the paths in its sources.json, or ./ and a file beside it"
            raise unknown_name(f"{self.name} has no source file", path, self.sources, allowed)
        return self.sources[path]


def dataset_table(name: str) -> DatasetTable:
    """Return the table of the benchmark ``name``, such as "fanoutqa" or "qabench/fanoutqa".

    Raises:
        InputError: an unknown name. The message lists all benchmarks.
    """
    return _dataset_table(name.removeprefix("qabench/"), folder_of(name))


@functools.cache
def _dataset_table(name: str, folder: Path) -> DatasetTable:
    path = folder / TABLE
    if not path.is_file():
        title, data = _declared(name, folder)
        if data:
            about = f"the split {data.split} of {data.path} on the Hub"
            config = Config(HUB_CONFIG, about, {data.split: (data.file(name).path,)})
            configs = {HUB_CONFIG: config}
            return DatasetTable(name, folder, title, HUB_CONFIG, configs, data=data)
    table = read_json(path)
    configs = {}
    for config_name, row in table["configs"].items():
        configs[config_name] = Config(config_name, row["description"], row["splits"])
    default = table["default"]
    check_name(f"{path}: the default config is", default, configs)
    return DatasetTable(name, folder, table["title"], default, configs, table.get("restriction"))


def take_declarations_from(reader: DeclarationReader) -> None:
    """Register the function that reads the title and the Hub dataset of a benchmark without tables.

    Both are attributes of the benchmark's class, which only ``qabench.benchmarks`` can import.
    """
    _readers[:] = [reader]


def _declared(name: str, folder: Path) -> tuple[str, HubDataset | None]:
    if not _readers:
        raise InputError(
            f"the benchmark {name} in {folder} has no {TABLE}, and its class is not known yet: "
            "import qabench.benchmarks first"
        )
    return _readers[0](name, folder)


def usable_names() -> list[str]:
    """Return the names of all benchmarks whose tables can be read, sorted.

    Commands use this if the user names no benchmark. A benchmark from outside whose tables cannot be
    read only causes a warning.
    """
    names = []
    for name in benchmark_names():
        try:
            dataset_table(name).sources  # noqa: B018 (it reads the table)
        except InputError as error:
            if name in shipped_names():
                raise
            warnings.warn(f"left out: {error}", stacklevel=2)
        else:
            names.append(name)
    return names


def pinned_digests(name: str, *configs: str) -> Callable[[str], bool]:
    """Return a function that tells whether a digest belongs to a pinned file of these configs.

    A digest is the first twelve hex digits, as in ``DatasetTable.file_digest``. Without
    ``configs``, the files of all configs count.
    """

    def is_pinned(digest: str) -> bool:
        """Tell whether a digest belongs to a pinned file of these configs."""
        table = dataset_table(name)
        digests: set[str] = set()
        for config in configs or table.configs:
            digests.update(map(table.file_digest, table.config(config).files))
        return digest in digests

    return is_pinned


def custom_digest(path: Path) -> str:
    """Return the first twelve hex digits of the SHA-256 of a file, such as custom questions.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise unreadable(f"the questions {path}", error) from None
