"""A run's overhead: FanOutQA closed-book against a fast server on loopback, next to a minimal Inspect task.

The minimal task has the same prompts, one call per sample, and Inspect's own scorer ``includes``. Both are run for a
quarter of the samples and for all of them, each in a process of its own. The CPU time per sample is that of the
additional samples, so that imports and the reading of data do not count; memory is the peak of the process. Samples
beyond the 310 questions of dev are epochs. Needs the extra ``run`` and FanOutQA's data. Run:

    python performance/run_throughput.py [--samples 1000] [--connections 50] [--delay 0] [--no-cache]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from openai_server import OpenAIServer

from qabench.cli.output import print_table
from qabench.tables import Table

QUESTIONS = 250  # of dev; more samples are epochs of these
# Executed in a separate process, whose CPU time and peak memory are those of the run.
RUN = """
import json, os, resource, sys, time
kind, url, folder, limit, epochs, connections, cache = sys.argv[1:]
os.environ |= {"QABENCH_API_KEY": "none", "QABENCH_CACHE": folder + "/cache", "INSPECT_CACHE_DIR": folder + "/inspect"}
import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from qabench.inspect_tasks import fanoutqa_closed_book
from qabench.runs.running import start
task = {"config": "dev", "lemmatizer": "simplemma"}
options = {"limit": int(limit), "epochs": int(epochs), "max_connections": int(connections), "log_dir": folder + "/logs"}
options["cache"] = cache == "yes"
began, used = time.perf_counter(), time.process_time()
if kind == "qabench run":
    start("fanoutqa", "closed-book", "m", base_url=url, task_args=task, **options)
else:
    samples = [Sample(id=one.id, input=one.input, target="Paris") for one in fanoutqa_closed_book(**task).dataset]
    minimal = inspect_ai.Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
    inspect_ai.eval(minimal, model="openai-api/qabench/m", model_base_url=url, display="none", temperature=0, **options)
report = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - used}
report["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(report))
"""
KINDS = ("qabench run", "minimal Inspect task")


def main() -> None:
    """Measures both kinds of runs and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    few, many = given.samples // 4, given.samples
    found = {kind: [measured(kind, samples, given) for samples in (few, many)] for kind in KINDS}
    rows = []
    for kind, (first, second) in found.items():
        more = many - few
        cpu = 1000 * (second["cpu"] - first["cpu"]) / more
        memory = 1024 * (second["megabytes"] - first["megabytes"]) / more
        rows.append([kind, f"{second['seconds']:.1f}", f"{cpu:.2f}", f"{second['megabytes']:.0f}", f"{memory:.1f}"])
    columns = ["run", "seconds", "CPU ms per sample", "peak MB", "KB per additional sample"]
    ratio = found[KINDS[0]][1]["seconds"] / found[KINDS[1]][1]["seconds"]
    title = f"{many} samples, {given.connections} connections, {given.delay} s per reply"
    print_table(Table(title, columns, rows, [f"qabench run takes {ratio:.2f} times as long"]))


def measured(kind: str, samples: int, given: argparse.Namespace) -> dict[str, Any]:
    """Seconds, CPU seconds and peak megabytes of one run."""
    epochs = max(1, samples // QUESTIONS)
    with OpenAIServer() as server, tempfile.TemporaryDirectory() as folder:
        server.delay = given.delay
        server.reply = lambda body: "Paris: 1998\nLima: 2004\nOslo: 1,234,567"
        sizes = [samples // epochs, epochs, given.connections, "yes" if given.cache else "no"]
        command = [sys.executable, "-P", "-c", RUN, kind, server.base_url, folder, *map(str, sizes)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        if len(server.calls) < samples // epochs * epochs:
            raise SystemExit(f"{len(server.calls)} calls for {samples} samples")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


if __name__ == "__main__":
    main()
