"""A run's throughput: FanOutQA closed-book over 1,000 samples against a fast server on loopback.

Measures the overhead of a run. The server answers each call after a fixed delay, so that a run that keeps all its
connections busy takes samples / connections * delay. For comparison, the same calls are made by a plain ``asyncio``
loop over the ``openai`` client, which neither scores nor writes a log. Memory is the run's peak, for a quarter of the
samples and for all of them. Run:

    python performance/run_throughput.py [--samples 1000] [--connections 50] [--delay 0.2]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from openai_server import OpenAIServer

from qabench.cli.output import print_table
from qabench.tables import Table

# Executed in a separate process, whose CPU time and peak memory are those of the run.
RUN = """
import json, resource, sys, time
from qabench.runs.running import start
from qabench.runs.log import read_run

url, folder, limit, epochs, connections = sys.argv[1:]
began, used = time.perf_counter(), time.process_time()
log = start(
    "fanoutqa", "closed-book", "m", base_url=url, log_dir=folder, limit=int(limit), epochs=int(epochs),
    max_connections=int(connections), cache=False, display="none",
    task_args={"config": "dev", "lemmatizer": "simplemma"},
)
report = {"seconds": time.perf_counter() - began, "processor": time.process_time() - used}
report["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
report |= read_run(log).counts()
print(json.dumps(report))
"""
QUESTIONS = 250  # of dev; more samples are epochs of these


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--delay", type=float, default=0.2)
    options = parser.parse_args()
    rows = []
    for samples in (options.samples // 4, options.samples):
        epochs = max(1, samples // QUESTIONS)
        ideal = samples / options.connections * options.delay
        with OpenAIServer() as server, tempfile.TemporaryDirectory() as folder:
            server.delay = options.delay
            server.reply = lambda body: "Paris: 1998\nLima: 2004\nOslo: 1,234,567"
            arguments = [server.base_url, folder, samples // epochs, epochs, options.connections]
            done = subprocess.run([sys.executable, "-P", "-c", RUN, *map(str, arguments)], stdout=subprocess.PIPE)
            run = json.loads(done.stdout)
            if (run["answered"], len(server.calls)) != (samples, samples):
                raise SystemExit(f"{run['answered']} answers and {len(server.calls)} calls for {samples} samples")
            spans = server.calls[-1].at - server.calls[0].at
            rows.append(
                [samples, ideal, spans, run["seconds"], run["processor"], server.max_in_flight, run["megabytes"]]
            )
            asked = [call.body for call in server.calls]
        with OpenAIServer() as server:
            server.delay = options.delay
            bare = asyncio.run(bare_loop(server.base_url, asked, options.connections))
        rows[-1].append(bare)
    report(rows, options)


async def bare_loop(url: str, bodies: list[dict[str, object]], connections: int) -> float:
    """Seconds for the same calls made with the plain client."""
    from openai import AsyncOpenAI

    limit = asyncio.Semaphore(connections)
    async with AsyncOpenAI(base_url=url, api_key="none") as client:

        async def one(body: dict[str, object]) -> None:
            async with limit:
                await client.chat.completions.create(**body)

        began = time.perf_counter()
        await asyncio.gather(*map(one, bodies))
        return time.perf_counter() - began


def report(rows: list[list[float]], options: argparse.Namespace) -> None:
    columns = [
        "samples",
        "ideal s",
        "calls s",
        "whole run s",
        "CPU ms per sample",
        "in flight",
        "peak MB",
        "bare s",
    ]
    cells = [
        [
            int(n),
            f"{ideal:.1f}",
            f"{calls:.1f}",
            f"{whole:.1f}",
            f"{1000 * cpu / n:.1f}",
            int(peak),
            f"{mb:.0f}",
            f"{bare:.1f}",
        ]
        for n, ideal, calls, whole, cpu, peak, mb, bare in rows
    ]
    notes = [
        "ideal: samples / connections * delay; calls: from the first call to the last; bare: the openai client alone",
        f"memory: {1000 * (rows[1][6] - rows[0][6]) / (rows[1][0] - rows[0][0]):.0f} KB per additional sample",
    ]
    print_table(Table(f"{options.connections} connections, {options.delay} s per reply", columns, cells, notes))


if __name__ == "__main__":
    main()
