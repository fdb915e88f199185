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
def released() -> threading.Event:
    return threading.Event()


@pytest.fixture
def web(released: threading.Event) -> Iterator[WebServer]:
    with WebServer() as running:
        running.pages["/robots.txt"] = Reply(b"User-agent: *\nDisallow:")
        for number in range(30):
            body = page(f"Page {number}", f"{TEXT} {number}").body
            parts = [body[:300], released.wait, body[300:]]
            running.pages[f"/{number}"] = Reply(parts=parts) if number % 3 == SILENT else Reply(body)
        running.found = lambda query: [f"/{(len(query) * 3 + number) % 30}" for number in range(6)]
        yield running
        released.set()


def start(arguments: list[str], cache: Path) -> subprocess.Popen[bytes]:
    """The command in a child process, whose output is appended to the file ``output`` next to the cache."""
    environment = os.environ | {"QABENCH_CACHE": str(cache), "QABENCH_API_KEY": "none"}
    command = [sys.executable, "-P", "-W", "ignore", "-m", "qabench", "run", *arguments]
    with (cache.parent / "output").open("ab") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)


def interrupted(process: subprocess.Popen[bytes], web: WebServer, number: int) -> int:
    """The exit code after a signal that is sent when all threads wait for silent pages."""
    before, asked = len(web.requests), -1
    while asked != len(web.requests) or not any(map(is_silent, web.paths()[before:])):
        asked = len(web.requests)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3)
            pytest.fail("the process ended before the signal; see the file output")
    process.send_signal(number)
    return process.wait(timeout=SECONDS)


def is_silent(path: str) -> bool:
    return path.strip("/").isdigit() and int(path.strip("/")) % 3 == SILENT


def test_an_interrupted_run_over_the_web(web: WebServer, released: threading.Event, tmp_path: Path) -> None:
    search = tmp_path / "search.toml"
    search.write_text(
        f'preset = "searxng"\nurl = "{web.url}/search"\n[pages]\ndelay = 0\ntimeout = 3000\nprivate_addresses = true\n'
    )
    with OpenAIServer() as chat:
        chat.reply = lambda body: "Light takes eight minutes [1]."
        options = ["--setting", "retrieve-read-web", "-T", f"search={search}", "-T", "ranker=bm25"]
        model = ["--model", "m", "--base-url", chat.base_url, "--log-dir", str(tmp_path / "logs")]
        first = start(["expertqa", "--config", "sample", *options, *model], tmp_path / "cache")
        assert interrupted(first, web, signal.SIGINT) == 128 + signal.SIGINT
        (log,) = (tmp_path / "logs").glob("*.eval")
        second = start(
            ["--resume", str(log), "--base-url", chat.base_url, "-T", f"search={search}"], tmp_path / "cache"
        )
        assert interrupted(second, web, signal.SIGTERM) == 128 + signal.SIGTERM
        before = Counter(path for path in web.paths() if not is_silent(path))
        assert before["/search"] and set(before.values()) == {1} | {before["/search"]}
        released.set()
        newest = max((tmp_path / "logs").glob("*.eval"), key=lambda path: path.stat().st_mtime)
        third = start(
            ["--resume", str(newest), "--base-url", chat.base_url, "-T", f"search={search}"], tmp_path / "cache"
        )
        assert third.wait(timeout=SECONDS) == 0, (tmp_path / "output").read_text()
        after = Counter(path for path in web.paths() if path != "/search")
        searches = Counter(path for path, _ in web.requests if path.startswith("/search"))
        assert {path for path, n in after.items() if n > 1} <= {path for path in after if is_silent(path)}
        paid = [n for prompt, n in chat.paid.items() if TEXT[:20] in prompt]  # without the first call of each process
        assert set(searches.values()) == set(paid) == {1}
