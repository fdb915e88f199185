"""Dataset repositories for the Hub: folders of Parquet files that the stock ``load_dataset`` reads.

The output is reproducible byte for byte with the same data, code and library versions: it contains
no times and no local paths, all options of the Parquet writer are pinned, and rows are regrouped,
so it does not depend on the batches of the Arrow files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from filelock import FileLock
from huggingface_hub import metadata_load

from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError, SourceUnavailable, some
from qabench.evaluation.scoring import Progress
from qabench.evaluation.signature import version
from qabench.hub.cards import card_text, eval_tasks, in_namespace
from qabench.hub.croissant import FILE as CROISSANT
from qabench.hub.croissant import croissant
from qabench.hub.leaderboards import INSPECT_AI, check_framework
from qabench.hub.register import NAMESPACE
from qabench.io.files import write_json, write_text
from qabench.loading_scripts import DatasetTable, dataset_table, folder_of, usable_names
from qabench.loading_scripts.load import load_dataset

MANIFEST = "qabench.json"
FORMAT = "qabench dataset repository"
# The size in Arrow format. The Parquet files are smaller.
MAX_SHARD_BYTES = 300_000_000
# The Hub's viewer reads a whole group of rows to show a page of 100.
ROWS_PER_GROUP = 1000
PARQUET: Json = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": True,
    "write_statistics": True,
    # With this index, the Hub's viewer can read single pages of a file.
    "write_page_index": True,
    # With this chunking, the Hub stores the common parts of several versions only once.
    "use_content_defined_chunking": True,
    "data_page_size": 1 << 20,
}
# The same line as in the Hub's own file, because large files that are not in LFS are rejected.
GIT_ATTRIBUTES = "*.parquet filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True, slots=True)
class Built:
    """A built dataset repository.

    Attributes:
        benchmark: the benchmark's name.
        path: the folder of the repository.
        rows: for each config that was built, the number of rows by split.
        missing: for each config whose data is not available, the reason.
        size: the total size of the repository's files in bytes.
        restriction: why the repository must not be uploaded. None if it may be.
    """

    benchmark: str
    path: Path
    rows: dict[str, dict[str, int]]
    missing: dict[str, str]
    size: int
    restriction: str | None

    def as_dict(self) -> Json:
        """Return the result as JSON data."""
        return {**asdict(self), "path": str(self.path), "redistributable": self.restriction is None}


def build(
    out: Path,
    names: Sequence[str] = (),
    configs: Sequence[str] = (),
    *,
    namespace: str = NAMESPACE,
    framework: str = INSPECT_AI,
    progress: Progress | None = None,
) -> list[Built]:
    """Write a repository OUT/BENCHMARK for each benchmark, each completely or not at all.

    Args:
        out: the folder of the repositories. Created if needed.
        names: the benchmarks, or () for all.
        configs: the configs of a single benchmark, or () for all whose data is available.
        namespace: the owner in the Hub names in the repository's files.
        framework: the framework of the tasks in ``eval.yaml``: "inspect-ai" or "qabench". See
            ``qabench.hub.leaderboards``.
        progress: called with the number of configs processed, and of all configs.

    Raises:
        SourceUnavailable: the data of a config in ``configs`` is not available. Without
            ``configs``, such configs are left out.
    """
    # Find what is wrong before the first repository is built.
    check_framework(framework)
    tables = {}
    for name in names or usable_names():
        # NAME and qabench/NAME are the same benchmark.
        table = dataset_table(name)
        tables[table.name] = table
    if configs and len(tables) != 1:
        raise InputError(
            f"configs need exactly one benchmark; got {len(tables)}: {', '.join(tables)}"
        )
    to_build = {}
    for name, table in tables.items():
        # Check all folders before the first is built, so that one that must not be replaced is
        # reported early.
        check_replaceable(out.absolute() / name)
        config_names = [table.config(config).name for config in configs or table.configs]
        to_build[name] = list(dict.fromkeys(config_names))

    # Build one repository after the other.
    total = sum(map(len, to_build.values()))
    done = 0
    built = []
    for name, table in tables.items():
        splits, missing = {}, {}
        for config in to_build[name]:
            try:
                splits[config] = load_dataset(name, config)
            except SourceUnavailable as error:
                if configs:
                    raise
                missing[config] = str(error)
            done += 1
            if progress:
                progress(done, total)
        rows = {}
        restriction = None
        for config, data_of_splits in splits.items():
            rows[config] = {split: len(data) for split, data in data_of_splits.items()}
            # A config without upstream files, such as a sample, has no data to restrict.
            if table.configs[config].files:
                restriction = table.restriction
        folder = out.absolute() / name
        with replacing(folder) as new:
            _write(new, table, splits, restriction, namespace, framework)
            size = sum(path.stat().st_size for path in new.rglob("*") if path.is_file())
        built.append(Built(name, folder, rows, missing, size, restriction))
    return built


def _write(
    folder: Path,
    table: DatasetTable,
    splits: Json,
    restriction: str | None,
    namespace: str,
    framework: str,
) -> None:
    """Write the files of a repository. The manifest is last, because it has the others' digests."""
    infos = {}
    for config, data_of_splits in splits.items():
        files: list[Path] = []
        for split, data in data_of_splits.items():
            files += _shards(data, folder / config, split)
        # All splits of a config have the same information. The sizes are set to those of the
        # written files.
        info = next(iter(data_of_splits.values())).info.copy()
        info.download_size = sum(path.stat().st_size for path in files)
        info.dataset_size = sum(split_info.num_bytes for split_info in info.splits.values())
        infos[config] = info
    card = card_text(table, infos, restriction)
    write_text(folder / "README.md", in_namespace(card, namespace))
    files_of_configs = [table.configs[config].files for config in splits]
    if not all(files_of_configs):
        # The card refers to the files of the sample.
        copy_files(folder_of(table.name) / "sample", folder / "sample")
    if (license := folder_of(table.name) / "LICENSE.md").is_file():
        shutil.copyfile(license, folder / license.name)
    write_text(folder / ".gitattributes", GIT_ATTRIBUTES)
    if tasks := eval_tasks(table, infos, framework):
        write_text(folder / "eval.yaml", in_namespace(tasks, namespace))
    written = digests(folder)
    metadata_of_card = metadata_load(folder / "README.md") or {}
    description = croissant(table, infos, metadata_of_card, written, restriction, namespace)
    write_json(folder / CROISSANT, description)
    # Other versions of these packages may write the same rows as different bytes.
    versions = {"qabench": version()}
    for package in ("datasets", "huggingface-hub", "pyarrow"):
        versions[package] = metadata.version(package)
    n_rows = {}
    # The sources are keyed by path, because configs can have files in common.
    sources: dict[str, Json] = {}
    for config, info in infos.items():
        n_rows[config] = {name: split.num_examples for name, split in info.splits.items()}
        for path in table.configs[config].files:
            source = table.sources[path]
            sources[path] = {
                "url": source.url,
                "git_blob_sha1": source.git_blob_sha1,
                "sha256": source.sha256,
                "license": source.license,
            }
    manifest = {
        "format": FORMAT,
        "benchmark": table.name,
        "redistributable": restriction is None,
        "restriction": restriction,
        "made_with": versions,
        "configs": n_rows,
        "sources": list(sources.values()),
        "files": written | {CROISSANT: digest(folder / CROISSANT)},
    }
    write_json(folder / MANIFEST, manifest)


def copy_files(source: Path, target: Path) -> None:
    """Copy a folder without caches, and without permissions: installed files may be read-only."""
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def _shards(data: Any, folder: Path, split: str) -> Iterable[Path]:
    """Write a split as Parquet files of up to ``MAX_SHARD_BYTES`` (as Arrow). Yield their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    size = data.info.splits[split].num_bytes or 0
    # An empty split still has one shard. Otherwise, every shard has at least one row.
    count = min(max(1, math.ceil(size / MAX_SHARD_BYTES)), max(1, len(data)))
    for number in range(count):
        path = folder / f"{split}-{number:05d}-of-{count:05d}.parquet"
        shard = data.shard(count, number, contiguous=True).with_format("arrow")
        with pq.ParquetWriter(path, data.features.arrow_schema, **PARQUET) as writer:
            # Row groups have a fixed size, because the batches of Arrow files depend on the
            # machine.
            for start in range(0, len(shard), ROWS_PER_GROUP):
                writer.write_table(shard[start : start + ROWS_PER_GROUP].combine_chunks())
        yield path


def digests(folder: Path, *, manifest: bool = False) -> dict[str, Json]:
    """Return size and SHA-256 of all files below ``folder`` by relative path, sorted.

    Args:
        folder: the folder of a repository.
        manifest: whether the manifest is one of them.
    """
    files: dict[str, Json] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name == MANIFEST and not manifest:
            continue
        # A link to a folder counts as a file, so that a folder with one is never replaced.
        if path.is_dir() and not path.is_symlink():
            continue
        files[name] = digest(path)
    return files


def digest(path: Path) -> Json:
    """Return size and SHA-256 of a file."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {"size": path.stat().st_size, "sha256": sha256}


def read_manifest(folder: Path) -> Json:
    """Return the manifest of a repository that ``qabench build`` wrote.

    Raises:
        InputError: the folder has no valid manifest.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        manifest = None
    if isinstance(manifest, dict) and manifest.get("format") == FORMAT:
        has_configs = isinstance(manifest.get("configs"), dict)
        has_files = isinstance(manifest.get("files"), dict)
        if has_configs and has_files:
            return dict(manifest)
    raise InputError(
        f"{folder} is not a repository written by `qabench build`: {path} does not exist or is not a manifest"
    )


def check_replaceable(folder: Path) -> None:
    """Raise InputError if a folder exists and was not written by qabench, or was changed since."""
    if not os.path.lexists(folder):
        return
    try:
        if folder.is_symlink():
            raise InputError(f"{folder} is a link")
        manifest = read_manifest(folder)
        foreign = []
        for name, own_digest in digests(folder).items():
            if manifest["files"].get(name) != own_digest:
                foreign.append(name)
        if foreign:
            raise InputError(f"{folder} has files that qabench did not write: {some(foreign)}")
    except (InputError, OSError) as error:
        raise InputError(
            f"{error}. It was not changed; move it away, or build into another folder."
        ) from None


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that replaces ``folder`` when the block ends without an error.

    ``folder`` is complete or absent at all times: the next build removes what a killed build left.
    Builds into the same parent folder wait for each other.
    """
    new = folder.with_name(f".{folder.name}.qabench-new")
    old = folder.with_name(f".{folder.name}.qabench-old")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(".qabench-build.lock")):
            for remnant in (new, old):
                shutil.rmtree(remnant, ignore_errors=True)
            new.mkdir()
            try:
                yield new
                check_replaceable(folder)
                if folder.exists():
                    os.rename(folder, old)
                os.rename(new, folder)
                shutil.rmtree(old, ignore_errors=True)
            finally:
                shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise QabenchError(f"cannot write {folder}: {error}") from error
