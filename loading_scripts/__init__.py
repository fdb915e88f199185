"""The benchmarks as datasets, one folder per benchmark.

A folder contains ``sources.json`` (the upstream files, pinned by digest), ``configs.json`` (the files of each config
and split), the builder ``NAME.py``, the dataset card ``README.md`` and a sample. This module reads the two tables
and does not import ``datasets``.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

from qabench.data.pinned import SourceTable, load_table
from qabench.data.sources import local_path
from qabench.errors import InputError, unknown_name

FOLDER = Path(__file__).parent
LEADERBOARD = "leaderboard"  # the name of a config with published scores
SHIPPED = "./"  # the prefix of a file that is in the benchmark's folder here, not in the upstream repository


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration of a benchmark: its splits, each with its files."""

    name: str
    description: str
    splits: dict[str, tuple[str, ...]]

    @property
    def files(self) -> list[str]:
        """Return the upstream files of all splits, in order, without duplicates; none if they ship with qabench."""
        paths = dict.fromkeys(path for files in self.splits.values() for path in files)
        return [path for path in paths if not path.startswith(SHIPPED)]


@dataclass(frozen=True, slots=True)
class DatasetTable:
    """The content of a benchmark's ``configs.json``: its title, its default config and its configs by name.

    ``restriction`` says why rows of the upstream files must not be published; None if they may be.
    """

    name: str
    title: str
    default: str
    configs: dict[str, Config]
    restriction: str | None = None

    def config(self, name: str | None) -> Config:
        """Return the config of that name, or the default one. Raises InputError that lists the allowed names."""
        try:
            return self.configs[name or self.default]
        except KeyError:
            raise unknown_name(f"{self.name} has no config", name, self.configs) from None


def benchmark_names() -> list[str]:
    """Return the names of all benchmarks, sorted."""
    return sorted(path.parent.name for path in FOLDER.glob("*/configs.json"))


@functools.cache
def dataset_table(name: str) -> DatasetTable:
    """Return the table of a benchmark, such as "fanoutqa" or "qabench/fanoutqa". Raises InputError that lists all."""
    name = name.removeprefix("qabench/")
    if name not in benchmark_names():
        raise unknown_name("unknown benchmark", name, benchmark_names())
    table = json.loads((FOLDER / name / "configs.json").read_text(encoding="utf-8"))
    configs = {
        config: Config(config, row["description"], {split: tuple(files) for split, files in row["splits"].items()})
        for config, row in table["configs"].items()
    }
    return DatasetTable(name, table["title"], table["default"], configs, table.get("restriction"))


def citation(name: str) -> str:
    """Return how to cite a benchmark, in BibTeX."""
    return (FOLDER / name / "citation.bib").read_text(encoding="utf-8")


@functools.cache
def source_table(name: str) -> SourceTable:
    """Return the table of a benchmark's upstream files; empty if all its files are shipped."""
    path = FOLDER / name / "sources.json"
    return load_table(path, name) if path.is_file() else SourceTable(name, ())


def open_path(name: str, path: str) -> Path:
    """Return a verified local path of a file of ``configs.json``.

    Raises SourceError if an upstream file is not available, or is not the pinned one.
    """
    if path.startswith(SHIPPED):
        return FOLDER / name / path
    return local_path(source_table(name)[path])


def file_digest(name: str, path: str) -> str:
    """Return twelve hex digits of the digest of a file's pinned content, for signatures and cache keys."""
    if path.startswith(SHIPPED):
        return custom_digest(FOLDER / name / path)
    source = source_table(name)[path]
    return (source.sha256 or source.git_blob_sha1 or "")[:12]


def custom_digest(path: Path) -> str:
    """Return the digest of a custom file of questions. Raises InputError if it cannot be read."""
    import hashlib

    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise InputError(f"cannot read the questions {path}: {error.strerror or error}") from None
