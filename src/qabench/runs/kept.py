"""Caches results that stay the same for a version of the code: counts of planned runs, options."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark
from qabench.data.rows import Json
from qabench.data.sources import available
from qabench.errors import QabenchError
from qabench.io.environment import code_version, package_version
from qabench.io.files import cache_dir, write_json
from qabench.io.limits import json_of
from qabench.loading_scripts import dataset_table, shipped_names

FOLDER = "plans"
# The suffix of the version of code with uncommitted changes. Its results are not kept.
DIRTY = ".dirty"


def kept(
    benchmark: Benchmark,
    arguments: Json,
    compute: Callable[[], Json],
    is_final: Callable[[Json], bool] = lambda result: True,
) -> Json:
    """Return the result of ``compute``, or an earlier result for the same code, data and arguments.

    A result is not kept if it is not final, if an argument names a file (whose content may change),
    if the code has uncommitted changes, or if the benchmark is from outside. An unreadable entry is
    replaced.
    """
    version = code_version()
    is_fixed = benchmark.name in shipped_names() and not version.endswith(DIRTY)
    if not is_fixed or any(map(_is_file, arguments.values())):
        return compute()
    facts = [version, package_version("inspect_ai"), benchmark.name, arguments, _here(benchmark)]
    text = json.dumps(facts, sort_keys=True, default=str)
    path = cache_dir() / FOLDER / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError):
        content: Any = json_of(path.read_bytes())
        if isinstance(content, dict):
            return content
    result = compute()
    if not is_final(result):
        return result
    with suppress(QabenchError):
        # If the cache cannot be written, the result is computed again the next time.
        write_json(path, result)
    return result


def _is_file(value: object) -> bool:
    """Return whether an argument, or an item of a list or of JSON in it, names a file or folder."""
    if isinstance(value, dict):
        return any(map(_is_file, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_is_file, value))
    try:
        return isinstance(value, str | Path) and Path(value).exists()
    except (OSError, ValueError):
        # The text may be too long for a path, or have a null character.
        return False


def _here(benchmark: Benchmark) -> Json:
    """Return what prompts depend on here: the available source files and QABENCH_ variables."""
    files = []
    for path, source in dataset_table(benchmark.name).sources.items():
        if available(source):
            files.append(path)
    variables = {}
    for name, value in os.environ.items():
        if name.startswith("QABENCH_"):
            variables[name] = value
    return {"files": files, "variables": variables}
