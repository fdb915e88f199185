"""Loading: FanOutQA dev from cold and warm caches, and all benchmarks from source files; stock function and qabench.

Cold runs are separate processes with empty caches of datasets and qabench; the source files may still be in the
system's page cache. Times do not include imports.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cases import Case, Measured

REPEAT = 10  # calls with a warm cache; their median is measured
PREPARE = """
import json, sys, time
import datasets
from qabench import load_dataset
from qabench.errors import SourceUnavailable
from qabench.loading_scripts import dataset_table, benchmark_names
start, rows, configs, missing = time.perf_counter(), 0, 0, 0
for name in benchmark_names():
    for config in dataset_table(name).configs:
        try:
            rows += sum(map(len, load_dataset(name, config).values()))
            configs += 1
        except SourceUnavailable:
            missing += 1
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "rows": rows, "configs": configs, "missing": missing}))
"""
BUILD = """
import json, sys, time
from pathlib import Path
import datasets
from qabench.hub.build import build
start = time.perf_counter()
built = build(Path(sys.argv[1]), skip_missing=True)
print(json.dumps({"seconds": time.perf_counter() - start, "bytes": sum(one.size for one in built)}))
"""
# The first call of the first process fills the cache. Rows are compared by their JSON text.
LOAD = """
import hashlib, json, statistics, sys, time
import datasets
how, path, repeat = sys.argv[1], sys.argv[2], int(sys.argv[3])
# datasets would import it, if it is installed, with the first builder of a process.
try:
    import scipy.io
except ImportError:
    pass
if how == "qabench":
    from qabench import load_dataset
else:
    from datasets import load_dataset
seconds = []
for _ in range(repeat + 1):
    start = time.perf_counter()
    rows = load_dataset(path, "dev")
    seconds.append(time.perf_counter() - start)
text = json.dumps(rows["validation"].to_list(), ensure_ascii=False)
digest = hashlib.sha256(text.encode()).hexdigest()
again = statistics.median(seconds[1:] or seconds)
print(json.dumps({"first": seconds[0], "again": again, "rows": digest}))
"""


def run(code: str, home: Path, *arguments: object) -> dict[str, Any]:
    """Runs code in a new process with the caches in ``home``. Returns the JSON that it prints."""
    home.mkdir(exist_ok=True)
    env = os.environ | {
        "HF_HOME": str(home),
        "QABENCH_CACHE": str(home / "qabench"),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    }
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=env, cwd=home, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cases(size: int | None = None) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as name:
        folder, numbers = Path(name), itertools.count()

        def new_home() -> Path:
            return folder / f"home{next(numbers)}"

        def everything(code: str, *arguments: object) -> Measured:
            found = run(code, new_home(), *arguments)
            return Measured(found["seconds"], note=f"{found['configs']} configs" if "configs" in found else "")

        yield Case("all available data, load_dataset, cold", lambda: everything(PREPARE), warm=False)
        yield Case(
            "all available data, qabench build, cold",
            lambda: everything(BUILD, folder / f"out{next(numbers)}"),
            warm=False,
        )
        run(BUILD, new_home(), folder / "built")
        paths = {"qabench": "fanoutqa", "stock": folder / "built" / "fanoutqa"}
        homes = {how: new_home() for how in paths}
        for how, path in paths.items():
            run(LOAD, homes[how], how, path, 0)

        def dev(how: str, when: str, cold: bool) -> Measured:
            found = run(LOAD, new_home() if cold else homes[how], how, paths[how], REPEAT)
            return Measured(found[when], found["rows"])

        for title, when, cold in (
            ("FanOutQA dev, cold", "first", True),
            ("FanOutQA dev, warm, new process", "first", False),
            ("FanOutQA dev, warm, same process", "again", False),
        ):
            ours, stock = (functools.partial(dev, how, when, cold) for how in paths)
            yield Case(title, ours, {"load_dataset of datasets, from a built repository": stock}, warm=False)
