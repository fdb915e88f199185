"""Make the stock ``load_dataset("qabench/fanoutqa", "dev")`` and ``evaluate.load`` work by Hub name without the Hub.

Both libraries fall back to their caches if a repository cannot be reached. A registered dataset or metric is written
where ``datasets`` or ``evaluate`` would have cached it; a marker file shows that qabench wrote the folder. The caches
return the folder that was changed last, so the current folder is touched, and older ones of qabench are removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from qabench.errors import SourceError
from qabench.evaluation.signature import version
from qabench.io.files import write_json, write_text
from qabench.loading import builder
from qabench.loading_scripts import dataset_table

MARKER = "qabench-registered.json"
NAMESPACE = "qabench"
State = Literal["registered", "not registered", "out of date", "shadowed", "no data"]


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of one dataset config or metric, by its Hub name.

    Attributes:
        state: "registered": the stock function returns the current version; "out of date": it returns an older version;
            "shadowed": it returns a copy that another program cached later; "not registered"; "no data": the source
            files are not available.
        detail: the reason for "no data".
    """

    kind: Literal["dataset", "metric"]
    name: str
    config: str | None
    state: State
    path: str | None = None
    detail: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the registration as JSON data."""
        return asdict(self)


def register_dataset(name: str, config: str) -> Registration:
    """Prepare a config where the stock ``load_dataset`` finds it, if it is not there yet. See ``Registration``."""
    hub_name, folder = f"{NAMESPACE}/{name}", _dataset_folder(name, config)
    with _lock(folder.parents[2]):
        try:
            _builder(name, config).download_and_prepare()
        except SourceError as error:
            return Registration("dataset", hub_name, config, "no data", detail=str(error))
        _mark(folder, name=hub_name, config=config)
        _remove(other for other in _marked(folder.parents[1], "*/*") if other != folder)
        os.utime(folder)
        _touch_default(name)
    return Registration("dataset", hub_name, config, "registered", str(folder))


def _touch_default(name: str) -> None:
    """Make ``load_dataset`` without a config return the default one, or the first one with data: the newest folder."""
    table = dataset_table(name)
    for config in dict.fromkeys([table.default, *table.configs]):
        folder = _dataset_folder(name, config)
        if (folder / MARKER).is_file():
            now = time.time_ns()  # the system's own clock for files may not have advanced since the last one
            os.utime(folder, ns=(now, now))
            return


def register_metric(name: str) -> Registration:
    """Write a metric's module where the stock ``evaluate.load`` finds it. See ``Registration``."""
    source = _metric_source(name)
    root = _metric_root(name)
    folder = root / _metric_hash(source)
    with _lock(root):
        write_text(root / "__init__.py", "")
        write_text(folder / "__init__.py", "")
        write_text(folder / f"{name}.py", source)  # always rewritten, because the newest file is loaded
        _mark(folder, name=f"{NAMESPACE}/{name}")
        _remove(other for other in _marked(root, "*") if other != folder)
    return Registration("metric", f"{NAMESPACE}/{name}", None, "registered", str(folder))


def dataset_status(name: str, config: str) -> Registration:
    """Return what the stock ``load_dataset`` would load for a config without access to the Hub."""
    folder = _dataset_folder(name, config)
    copies = [path for path in folder.parents[1].glob("*/*") if (path / "dataset_info.json").is_file()]
    newest = max(copies, key=lambda path: path.stat().st_mtime, default=None)
    return Registration("dataset", f"{NAMESPACE}/{name}", config, *_state(newest, folder))


def metric_status(name: str) -> Registration:
    """Return what the stock ``evaluate.load`` would load for a metric without access to the Hub."""
    root = _metric_root(name)
    copies = [path for path in root.glob("*") if len(path.name) == 64 and (path / f"{name}.py").is_file()]
    newest = max(copies, key=lambda path: (path / f"{name}.py").stat().st_mtime, default=None)
    current = root / _metric_hash(_metric_source(name))
    return Registration("metric", f"{NAMESPACE}/{name}", None, *_state(newest, current))


def unregister_dataset(name: str, config: str) -> list[Path]:
    """Remove all folders of a config that have qabench's marker, and return their paths."""
    config_folder = _dataset_folder(name, config).parents[1]
    with _lock(config_folder.parent):
        return _remove(_marked(config_folder, "*/*"))


def unregister_metric(name: str) -> list[Path]:
    """Remove all folders of a metric that have qabench's marker, and return their paths."""
    root = _metric_root(name)
    with _lock(root):
        return _remove(_marked(root, "*"))


def registrable(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (benchmark, config) for all configs of these benchmarks."""
    return [(table.name, config) for table in map(dataset_table, names) for config in table.configs]


def _state(newest: Path | None, current: Path) -> tuple[State, str | None]:
    """Return the state and the path of the copy that is loaded."""
    if newest is None:
        return "not registered", None
    if newest == current:
        return "registered", str(newest)
    return "out of date" if (newest / MARKER).is_file() else "shadowed", str(newest)


def _builder(name: str, config: str) -> Any:
    return builder(name, config, repo_id=f"{NAMESPACE}/{name}", dataset_name=name)


def _dataset_folder(name: str, config: str) -> Path:
    return Path(_builder(name, config).cache_dir)


def _metric_root(name: str) -> Path:
    from evaluate.loading import init_dynamic_modules

    return Path(init_dynamic_modules()) / "metrics" / f"{NAMESPACE}--{name}"


def _metric_source(name: str) -> str:
    import qabench.metrics

    folder = Path(qabench.metrics.__file__).parent
    return (folder / name / f"{name}.py").read_text(encoding="utf-8")


def _metric_hash(source: str) -> str:
    # The module's text, and the version of the code that it imports.
    return hashlib.sha256(f"{version()}\n{source}".encode()).hexdigest()


def _mark(folder: Path, **content: str) -> None:
    write_json(folder / MARKER, {"written_by": "qabench register", "qabench": version(), **content})


def _marked(folder: Path, pattern: str) -> list[Path]:
    return sorted(path.parent for path in folder.glob(f"{pattern}/{MARKER}") if _is_ours(path))


def _is_ours(marker: Path) -> bool:
    try:
        return bool(json.loads(marker.read_text(encoding="utf-8")).get("written_by") == "qabench register")
    except (OSError, ValueError, AttributeError):
        return False


def _remove(folders: Iterable[Path]) -> list[Path]:
    removed = []
    for folder in folders:
        shutil.rmtree(folder)
        removed.append(folder)
        parent = folder.parent
        if not any(parent.iterdir()):  # the folder of a version, now empty
            parent.rmdir()
    return removed


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Allow only one process at a time to register a dataset or metric."""
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.qabench.lock")):
        yield
