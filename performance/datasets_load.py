"""Times loading: FanOutQA dev from a warm cache, and all benchmarks from source files; stock function and qabench.

    python performance/datasets_load.py [--repeat 20]

Cold runs are separate processes with empty caches of datasets and qabench; the source files may still be in the
system's page cache. Times do not include imports unless the row says "with imports".
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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
from qabench.hub.build.repository_build import build
start = time.perf_counter()
built = build(Path(sys.argv[1]), skip_missing=True)
print(json.dumps({"seconds": time.perf_counter() - start, "bytes": sum(one.size for one in built)}))
"""
# The first call of the first process fills the cache. Rows are compared by their JSON text.
LOAD = """
import hashlib, json, statistics, sys, time
import datasets
how, path, repeat = sys.argv[1], sys.argv[2], int(sys.argv[3])
# datasets imports it, if it is installed, with the first builder of a process.
start = time.perf_counter()
try:
    import scipy.io
except ImportError:
    pass
late = time.perf_counter() - start
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
print(json.dumps({"first": seconds[0], "again": statistics.median(seconds[1:]), "late": late, "rows": digest}))
"""


def run(code: str, home: Path, *arguments: object) -> tuple[float, dict[str, Any]]:
    """Runs code in a new process with the caches in ``home``. Returns seconds, and the JSON that it prints."""
    env = os.environ | {
        "HF_HOME": str(home),
        "QABENCH_CACHE": str(home / "qabench"),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    }
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=env, cwd=home, stdout=subprocess.PIPE, check=True
    )
    return time.perf_counter() - start, json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20, help="calls with a warm cache; their median is printed")
    parser.add_argument("--cold", type=int, default=3, help="cold runs; their median is printed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        homes = (path for path in map(Path(folder).joinpath, map(str, range(1000))) if path.mkdir() is None)
        prepared = [run(PREPARE, next(homes)) for _ in range(options.cold)]
        built = [run(BUILD, next(homes), Path(folder) / f"out{i}") for i in range(options.cold)]
        repository = Path(folder) / "out0" / "fanoutqa"
        ours, stock, our_next, stock_next = [], [], [], []
        for _ in range(options.cold):
            for how, path, cold, warm in (
                ("qabench", "fanoutqa", ours, our_next),
                ("stock", repository, stock, stock_next),
            ):
                home = next(homes)
                cold.append(run(LOAD, home, how, path, options.repeat)[1])
                warm.append(run(LOAD, home, how, path, options.repeat)[1])
    if len({result["rows"] for result in ours + stock + our_next + stock_next}) != 1:
        raise SystemExit("the rows of the stock function differ from ours")
    what = prepared[0][1]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{len(os.sched_getaffinity(0))} cores, load average {load}; rows of dev equal both ways; medians")
    print(f"all available data: {what['configs']} configs, {what['rows']} rows; {what['missing']} configs missing")
    lines = [
        ("all: load_dataset from source files, cold", [result["seconds"] for _, result in prepared]),
        ("all: the same, with imports", [seconds for seconds, _ in prepared]),
        ("all: qabench build, cold", [result["seconds"] for _, result in built]),
        ("all: the same, with imports", [seconds for seconds, _ in built]),
        ("dev: qabench.load_dataset, cold", [result["first"] for result in ours]),
        ("dev: stock, on a built repository, cold", [result["first"] for result in stock]),
        ("dev: qabench.load_dataset, warm, new process", [result["first"] for result in our_next]),
        ("dev: stock, warm, new process", [result["first"] for result in stock_next]),
        ("late import of scipy by datasets, not in the lines on dev", [result["late"] for result in our_next]),
        ("dev: qabench.load_dataset, warm, same process", [result["again"] for result in our_next]),
        ("dev: stock, warm, same process", [result["again"] for result in stock_next]),
    ]
    for name, seconds in lines:
        print(f"{name:60}{statistics.median(seconds):9.3f} s")


if __name__ == "__main__":
    main()
