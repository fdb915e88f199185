"""Make the stock ``load_dataset`` and ``evaluate.load`` find qabench's Hub names without the Hub.

Both libraries fall back to their caches if a repository cannot be reached. A registered dataset or
metric is written where ``datasets`` or ``evaluate`` would have cached it. A marker file shows that
qabench wrote the folder. The caches return the folder that was changed last, so the current folder
is touched, and older ones of qabench are removed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from qabench.errors import SourceError
from qabench.evaluation.signature import version
from qabench.io.files import write_json, write_text
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.load import builder
from qabench.metrics import metric_folder

MARKER = "qabench-registered.json"
NAMESPACE = "qabench"
# The file in which ``datasets`` describes a prepared dataset.
DATASET_INFO = "dataset_info.json"
# The suffix of a folder that ``datasets`` is writing.
INCOMPLETE = ".incomplete"
# The suffix of a placeholder folder for a default config whose data is not available.
WITHOUT_DATA = "-without-data"
# Only one process at a time registers a dataset or a metric.
LOCK = ".qabench.lock"


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of one dataset config or metric, by its Hub name.

    Attributes:
        state: "registered": the stock function returns the current version. "no data": the source
            files are not available, for the reason ``detail``.
    """

    kind: Literal["dataset", "metric"]
    name: str
    config: str | None
    state: Literal["registered", "no data"]
    path: str | None = None
    detail: str | None = None


def register_dataset(name: str, config: str, cache_dir: Path | None = None) -> Registration:
    """Prepare a config where the stock ``load_dataset`` finds it, if it is not there yet.

    ``cache_dir`` is that of the stock function, by default below HF_HOME. See ``Registration``.
    """
    hub_name = f"{NAMESPACE}/{name}"
    try:
        # The builder of a custom benchmark reads the rows, if they decide the columns.
        prepared = _builder(name, config, cache_dir)
    except SourceError as error:
        return Registration("dataset", hub_name, config, "no data", detail=str(error))
    folder = Path(prepared.cache_dir)
    with FileLock(f"{folder.parents[2]}{LOCK}"):
        _remove_unfinished(folder.parents[2])
        try:
            _prepare(prepared)
        except SourceError as error:
            return Registration("dataset", hub_name, config, "no data", detail=str(error))
        _replace_others(folder, folder.parents[1], "*/*", name=hub_name, config=config)
        os.utime(folder)
        _touch_default(name, cache_dir)
    return Registration("dataset", hub_name, config, "registered", str(folder))


def _prepare(prepared: Any) -> None:
    """Prepare a config, and load it once: files of a run that was killed are prepared again."""
    prepared.download_and_prepare()
    try:
        prepared.as_dataset()
    except (OSError, ValueError):
        # An Arrow file is missing or incomplete.
        prepared.download_and_prepare(download_mode="force_redownload")
        prepared.as_dataset()


def _remove_unfinished(root: Path) -> None:
    """Remove a dataset's unfinished folders, which a killed run left.

    The stock ``load_dataset`` fails if there is one. This module writes below ``root`` only under a
    lock, so no unfinished folder of another process of qabench is in use.
    """
    for folder in root.glob("*/*/*"):
        # The information is written before an unfinished folder gets its final name.
        is_finished = folder.suffix != INCOMPLETE and (folder / DATASET_INFO).is_file()
        if folder.is_dir() and not is_finished:
            shutil.rmtree(folder)


def _touch_default(name: str, cache_dir: Path | None) -> None:
    """Make ``load_dataset`` without a config return the default config.

    ``datasets`` takes the folder that was changed last. If the default config has no data, no other
    config must take its place. In that case, a second folder with the hash of the newest one makes
    ``datasets`` ask for a config.
    """
    table = dataset_table(name)
    folder = Path(_builder(name, table.default, cache_dir).cache_dir)
    no_default = folder.parents[2] / f"{table.default}{WITHOUT_DATA}"
    if no_default.is_dir():
        shutil.rmtree(no_default)
    # The clock of the file system may not have advanced since the last folder was written.
    now = time.time_ns()
    if (folder / MARKER).is_file():
        os.utime(folder, ns=(now, now))
        return
    registered = [path.parent for path in folder.parents[2].glob(f"*/*/*/{MARKER}")]
    if registered:
        newest = max(registered, key=lambda path: path.stat().st_mtime_ns)
        label = no_default / newest.parent.name / newest.name
        write_json(label / DATASET_INFO, {"config_name": no_default.name})
        os.utime(newest, ns=(now, now))
        os.utime(label, ns=(now, now))


def register_metric(name: str) -> Registration:
    """Write a metric's module where the stock ``evaluate.load`` finds it. See ``Registration``."""
    from evaluate.loading import init_dynamic_modules

    source = (metric_folder(name) / f"{name}.py").read_text(encoding="utf-8")
    root = Path(init_dynamic_modules()) / "metrics" / f"{NAMESPACE}--{name}"
    # The module's text, and the version of the code that it imports.
    folder = root / hashlib.sha256(f"{version()}\n{source}".encode()).hexdigest()
    with FileLock(f"{root}{LOCK}"):
        write_text(root / "__init__.py", "")
        write_text(folder / "__init__.py", "")
        # Always rewritten, because the newest file is loaded.
        write_text(folder / f"{name}.py", source)
        _replace_others(folder, root, "*", name=f"{NAMESPACE}/{name}")
    return Registration("metric", f"{NAMESPACE}/{name}", None, "registered", str(folder))


def _builder(name: str, config: str, cache_dir: Path | None) -> Any:
    # As an absolute path: datasets names its lock after the path.
    folder = None if cache_dir is None else str(cache_dir.absolute())
    return builder(name, config, cache_dir=folder, repo_id=f"{NAMESPACE}/{name}", dataset_name=name)


def _replace_others(folder: Path, root: Path, pattern: str, **content: str) -> None:
    """Mark a folder as qabench's, and remove the other folders below ``root`` that are marked."""
    write_json(folder / MARKER, {"written_by": "qabench register", "qabench": version(), **content})
    for marker in list(root.glob(f"{pattern}/{MARKER}")):
        if marker.parent != folder:
            shutil.rmtree(marker.parent)
            if not any(marker.parents[1].iterdir()):
                # The folder of this version is empty now.
                marker.parents[1].rmdir()
