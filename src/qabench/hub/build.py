"""Dataset repositories for the Hub: Parquet shards, card and tasks in a folder that the stock ``load_dataset`` reads.

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

from qabench.data.predictions import some
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError, SourceUnavailable, check_name
from qabench.evaluation.scoring import Progress
from qabench.evaluation.signature import version
from qabench.hub.cards import card_text, eval_tasks, in_namespace
from qabench.hub.leaderboards import FRAMEWORKS, INSPECT_AI
from qabench.hub.register import NAMESPACE
from qabench.io.files import write_json, write_text
from qabench.loading import load_dataset
from qabench.loading_scripts import DatasetTable, dataset_table, folder_of, source_table, usable_names

MANIFEST = "qabench.json"
FORMAT = "qabench dataset repository"
MAX_SHARD_BYTES = 300_000_000
ROWS_PER_GROUP = 1000
PARQUET: Json = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": True,
    "write_statistics": True,
    "write_page_index": True,  # used by the Hub's viewer
    # so that the Hub stores common parts of versions only once
    "use_content_defined_chunking": True,
    "data_page_size": 1 << 20,
}
# The same as the Hub's: git rejects large files that are not in LFS.
GIT_ATTRIBUTES = "*.parquet filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True, slots=True)
class Built:
    """The result of one benchmark.

    Attributes:
        path: its repository.
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
    """Write OUT/BENCHMARK for each benchmark, completely or not at all.

    Args:
        out: the folder of the repositories. Created if needed.
        names: the benchmarks, or () for all.
        configs: the configs of a single benchmark, or () for all whose data is available.
        namespace: the owner in the Hub names in card and tasks.
        framework: whose leaderboards ``eval.yaml`` has: "inspect-ai" or "qabench". See
            ``qabench.hub.leaderboards``.
        progress: called with the number of configs processed, and of all configs.

    Raises SourceUnavailable if the data of a config in ``configs`` is not available. Without
    ``configs``, such configs are left out.
    """
    check_name("eval.yaml has no framework", framework, FRAMEWORKS)
    tables = {table.name: table for table in map(dataset_table, names or usable_names())}
    if configs and len(tables) != 1:
        raise InputError(f"configs need exactly one benchmark; got {len(tables)}: {', '.join(tables)}")
    for name in tables:  # before the work
        check_replaceable(out.absolute() / name)
    to_build = {
        name: list(dict.fromkeys(table.config(config).name for config in configs or table.configs))
        for name, table in tables.items()
    }
    total, done, built = sum(map(len, to_build.values())), 0, []
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
        rows = {
            config: {split: len(part) for split, part in parts.items()}
            for config, parts in splits.items()
        }
        restriction = (
            table.restriction if any(table.configs[config].files for config in splits) else None
        )
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
    infos = {}
    for config, parts in splits.items():
        files = [path for name, part in parts.items() for path in _shards(part, folder / config, name)]
        info = next(iter(parts.values())).info.copy()
        info.download_size = sum(path.stat().st_size for path in files)
        info.dataset_size = sum(split.num_bytes for split in info.splits.values())
        infos[config] = info
    card = card_text(table, infos, restriction)
    write_text(folder / "README.md", in_namespace(card, namespace))
    if any(not table.configs[config].files for config in splits):  # the card refers to its files
        copy_files(folder_of(table.name) / "sample", folder / "sample")
    if (license := folder_of(table.name) / "LICENSE.md").is_file():
        shutil.copyfile(license, folder / license.name)
    write_text(folder / ".gitattributes", GIT_ATTRIBUTES)
    if tasks := eval_tasks(table, infos, framework):
        write_text(folder / "eval.yaml", in_namespace(tasks, namespace))
    sources = source_table(table.name)
    used = dict.fromkeys(path for config in infos for path in table.configs[config].files)
    manifest = {
        "format": FORMAT,
        "benchmark": table.name,
        "redistributable": restriction is None,
        "restriction": restriction,
        "made_with": {"qabench": version()}
        | {name: metadata.version(name) for name in ("datasets", "huggingface-hub", "pyarrow")},
        "configs": {
            config: {name: split.num_examples for name, split in info.splits.items()}
            for config, info in infos.items()
        },
        "sources": [
            {
                name: getattr(sources[path], name)
                for name in ("url", "git_blob_sha1", "sha256", "license")
            }
            for path in used
        ],
        "files": digests(folder),
    }
    write_json(folder / MANIFEST, manifest)


def copy_files(source: Path, target: Path) -> None:
    """Copy a folder without caches and permissions.

    The files of an installation may be read-only.
    """
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def _shards(part: Any, folder: Path, split: str) -> Iterable[Path]:
    """Write a split as Parquet files with about equal numbers of rows, of ``MAX_SHARD_BYTES`` in Arrow format."""
    folder.mkdir(parents=True, exist_ok=True)
    size = part.info.splits[split].num_bytes or 0
    count = min(max(1, math.ceil(size / MAX_SHARD_BYTES)), max(1, len(part)))
    for number in range(count):
        path = folder / f"{split}-{number:05d}-of-{count:05d}.parquet"
        shard = part.shard(count, number, contiguous=True).with_format("arrow")
        with pq.ParquetWriter(path, part.features.arrow_schema, **PARQUET) as writer:
            for start in range(0, len(shard), ROWS_PER_GROUP):
                writer.write_table(shard[start : start + ROWS_PER_GROUP].combine_chunks())
        yield path


def digests(folder: Path, *, manifest: bool = False) -> dict[str, Json]:
    """Return size and SHA-256 of all files below ``folder`` by relative path, sorted, with or without the manifest."""
    files: dict[str, Json] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (manifest or name != MANIFEST) and (path.is_symlink() or not path.is_dir()):
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            files[name] = {"size": path.stat().st_size, "sha256": sha256}
    return files


def read_manifest(folder: Path) -> Json:
    """Return the manifest of a repository that ``qabench build`` wrote.

    Raise InputError if it has none.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        manifest = None
    is_manifest = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    if is_manifest and all(isinstance(manifest.get(key), dict) for key in ("configs", "files")):
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
        other = [
            name for name, digest in digests(folder).items() if manifest["files"].get(name) != digest
        ]
        if other:
            raise InputError(f"{folder} has files that qabench did not write: {some(other)}")
    except (InputError, OSError) as error:
        raise InputError(
            f"{error}. It was not changed; move it away, or build into another folder."
        ) from None


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that replaces ``folder`` when the block ends, and is removed if the block fails.

    ``folder`` is complete or absent at all times: the next build removes what a killed build left.
    Only one build runs at a time. Others wait.
    """
    new, old = (folder.with_name(f".{folder.name}.qabench-{state}") for state in ("new", "old"))
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
