"""Tests the client for language models under faults: calls made, replies lost, replies paid for twice.

A scripted server on loopback answers 100 questions and injects one kind of fault into each fifth call. A reply
counts as paid for when a good one has left the server in full. Lost: questions without a reply at the end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from openai_server import Fault, OpenAIServer, completion

from qabench.io.tables import Table

QUESTIONS = 100
EVERY = 5
TIMEOUT = 2.0
FAULTS = {
    "none": None,
    "429": Fault(429, body={"error": {"message": "slow down"}}),
    "429 with Retry-After: 0.2": Fault(429, {"Retry-After": "0.2"}, {}),
    "500": Fault(500, body="oops"),
    "slower than the timeout": Fault(body=completion("C"), delay=TIMEOUT + 0.5),
    "one byte at a time": Fault(body=completion("C"), drip=0.05),
    "connection dropped": Fault(drop=True),
    "body truncated": Fault(body=completion("C"), truncate=50),
    "malformed JSON": Fault(body='{"choices": ['),
    "wrong shape": Fault(body={"choices": []}),
    "error with status 200": Fault(body={"error": {"message": "provider down"}}),
}
WORKER = f"""
import sys
from pathlib import Path
from qabench.llm.cache import ReplyCache
from qabench.llm.client import ChatClient
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest
from qabench.llm.running import run_sync

url, path = sys.argv[1:]
requests = [ChatRequest("m", (("user", str(i)),)) for i in range({QUESTIONS})]
cache = ReplyCache(Path(path))
client = ChatClient(Endpoint(url, "k"), cache, retries=8, timeout={TIMEOUT})
print(sum(outcome.reply is not None for outcome in run_sync(client.complete(requests))))
"""


def start(server: OpenAIServer, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, server.base_url, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def one_process(server: OpenAIServer, path: Path) -> list[int]:
    return [int(start(server, path).communicate()[0])]


def two_processes(server: OpenAIServer, path: Path) -> list[int]:
    return [int(process.communicate()[0]) for process in [start(server, path), start(server, path)]]


def killed(kill: int) -> Callable[[OpenAIServer, Path], list[int]]:
    """Two runs that are stopped halfway by a signal, and a third one that completes."""

    def run(server: OpenAIServer, path: Path) -> list[int]:
        for until in (35, 70):
            process = start(server, path)
            while len(server.calls) < until:
                time.sleep(0.002)
            process.send_signal(kill)
            process.communicate()
        return one_process(server, path)

    return run


def rows() -> Iterator[list[Any]]:
    fault_of_each_fifth = [(name, one_process, fault) for name, fault in FAULTS.items()]
    processes = [
        ("two processes at once", two_processes, None),
        ("two processes at once, and 500", two_processes, FAULTS["500"]),
        ("kill -9 twice, then resumed", killed(signal.SIGKILL), None),
        ("Ctrl-C twice, then resumed", killed(signal.SIGINT), None),
    ]
    for name, work, fault in fault_of_each_fifth + processes:
        injected = 0

        def inject(number: int, body: Any, fault: Fault | None = fault) -> Fault | None:
            nonlocal injected
            if fault is None or number % EVERY:
                return None
            injected += 1
            return fault

        with tempfile.TemporaryDirectory() as folder, OpenAIServer() as server:
            server.delay, server.fault = 0.05, inject
            answered = work(server, Path(folder) / "replies.sqlite")
            while server.in_flight:
                time.sleep(0.01)
            twice = sum(times - 1 for times in server.paid.values())
            yield [name, injected, len(server.calls), QUESTIONS - min(answered), twice, server.max_in_flight]


def table() -> Table:
    os.environ["PYTHONWARNINGS"] = "error"
    columns = ["fault", "injected", "calls made", "replies lost", "paid twice", "most in flight"]
    notes = [
        f"{QUESTIONS} questions, 20 calls in flight per process; paid: the server had sent the whole reply",
        "after a kill, only calls that were in flight (at most 20 per kill) are paid again",
    ]
    return Table("The client under faults", columns, list(rows()), notes)
