"""A run's overhead: FanOutQA closed-book against a fast server on loopback, next to a minimal
Inspect task.

The minimal task has the same prompts, one call per sample, and Inspect's own scorer ``includes``.
For the CPU time per sample, both are run for a quarter of the samples and for all of them, each in
a process of its own: it is the time of the additional samples, so that imports and the reading of
data do not count. Samples beyond the 310 questions of dev are epochs. Needs the extra ``run`` and
FanOutQA's data.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from cases import Case, Measured
from openai_server import OpenAIServer

QUESTIONS = 250  # of dev; more samples are epochs of these
# Executed in a separate process, whose CPU time and peak memory are measured.
RUN = """
import json, os, resource, sys, time
kind, url, folder, limit, epochs, connections, cache = sys.argv[1:]
os.environ |= {"QABENCH_API_KEY": "none", "QABENCH_CACHE": folder + "/cache", "INSPECT_CACHE_DIR": folder + "/inspect"}
import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from qabench.adapters.inspect_ai.tasks import inspect_tasks
from qabench.benchmarks import benchmark
from qabench.runs.running import start
task = {"config": "dev", "lemmatizer": "simplemma"}
options = {"limit": int(limit), "epochs": int(epochs), "max_connections": int(connections), "log_dir": folder + "/logs"}
options["cache"] = cache == "yes"
began, used = time.perf_counter(), time.process_time()
if kind == "qabench run":
    fanoutqa = benchmark("fanoutqa")
    start(fanoutqa, fanoutqa.setting("closed-book"), "m", base_url=url, task_args=task, **options)
else:
    samples = [Sample(id=row.id, input=row.input, target="Paris") for row in task_of_benchmark(**task).dataset]
    minimal = inspect_ai.Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
    inspect_ai.eval(minimal, model="openai-api/qabench/m", model_base_url=url, display="none", temperature=0, **options)
report = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - used}
report["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(report))
"""
OURS, MINIMAL = "qabench run", "minimal Inspect task"
SAMPLES = 1000
CONNECTIONS = 50


def cases(size: int | None = None) -> Iterator[Case]:
    others = {MINIMAL: lambda: more_samples(MINIMAL)}
    yield Case("CPU time per sample", lambda: more_samples(OURS), others, warm=False)
    whole = {MINIMAL: lambda: Measured(measured(MINIMAL, SAMPLES)["seconds"])}
    yield Case(
        f"a run of {SAMPLES} samples",
        lambda: Measured(measured(OURS, SAMPLES)["seconds"]),
        whole,
        warm=False,
    )


def more_samples(kind: str) -> Measured:
    """The CPU time of each of the last three quarters of the samples, and their memory."""
    first, second = (measured(kind, samples) for samples in (SAMPLES // 4, SAMPLES))
    more = SAMPLES - SAMPLES // 4
    kilobytes = 1024 * (second["megabytes"] - first["megabytes"]) / more
    return Measured((second["cpu"] - first["cpu"]) / more, note=f"{kilobytes:.1f} KB per sample")


def measured(kind: str, samples: int) -> dict[str, Any]:
    """Seconds, CPU seconds and peak megabytes of one run."""
    epochs = max(1, samples // QUESTIONS)
    with OpenAIServer() as server, tempfile.TemporaryDirectory() as folder:
        server.reply = lambda body: "Paris: 1998\nLima: 2004\nOslo: 1,234,567"
        sizes = [samples // epochs, epochs, CONNECTIONS, "yes"]
        command = [sys.executable, "-P", "-c", RUN, kind, server.base_url, folder, *map(str, sizes)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        if len(server.calls) < samples // epochs * epochs:
            raise SystemExit(f"{len(server.calls)} calls for {samples} samples")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report
