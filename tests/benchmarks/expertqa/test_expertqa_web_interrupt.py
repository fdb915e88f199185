"""A run over the web that is interrupted while servers are silent: it ends at once, and fetches no page twice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai_server import OpenAIServer
from web_server import Reply, WebServer, page

pytest.importorskip("inspect_ai", reason="needs the extra run")
pytest.importorskip("trafilatura", reason="needs the extra web")

pytestmark = pytest.mark.slow  # starts processes
TEXT = "Light takes eight minutes and twenty seconds from the Sun to the Earth, as every astronomer knows. " * 12
SECONDS = 300  # for a step, on a busy machine; a process that waits for a silent server needs longer
SILENT = 2  # the pages with this remainder by 3 send half of their text


@pytest.fixture
def web() -> Iterator[tuple[WebServer, threading.Event]]:
    released = threading.Event()
    with WebServer() as running:
        running.pages["/robots.txt"] = Reply(b"User-agent: *\nDisallow:")
        for number in range(30):
            body = page(f"Page {number}", f"{TEXT} {number}").body
            parts = [body[:300], released.wait, body[300:]]
            running.pages[f"/{number}"] = Reply(parts=parts) if number % 3 == SILENT else Reply(body)
        running.found = lambda query: [f"/{(len(query) * 3 + number) % 30}" for number in range(6)]
        yield running, released
        released.set()


def start(arguments: list[str], cache: Path) -> subprocess.Popen[bytes]:
    """The command in a child process, whose output is appended to the file ``output`` next to the cache."""
    environment = os.environ | {"QABENCH_CACHE": str(cache), "QABENCH_API_KEY": "none"}
    command = [sys.executable, "-P", "-W", "ignore", "-m", "qabench", "run", *arguments]
    with (cache.parent / "output").open("ab") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)


def is_silent(path: str) -> bool:
    return path.strip("/").isdigit() and int(path.strip("/")) % 3 == SILENT


def test_an_interrupted_run_over_the_web(web: tuple[WebServer, threading.Event], tmp_path: Path) -> None:
    server, released = web
    search = tmp_path / "search.toml"
    search.write_text(
        f'preset = "searxng"\nurl = "{server.url}/search"\n'
        "[pages]\ndelay = 0\ntimeout = 3000\nprivate_addresses = true\n"
    )
    with OpenAIServer() as chat:
        chat.reply = lambda body: "Light takes eight minutes [1]."
        options = ["--base-url", chat.base_url, "-T", f"search={search}"]
        first = [
            "expertqa",
            "--config",
            "sample",
            "--setting",
            "retrieve-read-web",
            "-T",
            "ranker=bm25",
            "--model",
            "m",
        ]
        process = start([*first, *options, "--log-dir", str(tmp_path / "logs")], tmp_path / "cache")
        requests = -1
        while requests != len(server.requests) or not any(map(is_silent, server.paths())):
            requests = len(server.requests)  # all threads wait for silent pages when no request is added
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=3)
                pytest.fail("the process ended before the signal; see the file output")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=SECONDS) == 128 + signal.SIGINT
        before = Counter(path for path in server.paths() if not is_silent(path))
        assert before["/search"] and set(before.values()) == {1} | {before["/search"]}
        released.set()
        (log,) = (tmp_path / "logs").glob("*.eval")
        resumed = start(["--resume", str(log), *options], tmp_path / "cache")
        assert resumed.wait(timeout=SECONDS) == 0, (tmp_path / "output").read_text()
        after = Counter(path for path in server.paths() if path != "/search")
        searches = Counter(path for path, _ in server.requests if path.startswith("/search"))
        assert all(is_silent(path) for path, n in after.items() if n > 1)
        paid = [n for prompt, n in chat.paid.items() if TEXT[:20] in prompt]  # without the first call of each process
        assert set(searches.values()) == set(paid) == {1}
