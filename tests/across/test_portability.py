"""What macOS and Windows lack: the names are removed, and the platform is changed once other
packages are imported.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
POSIX = ["fork", "forkpty", "getuid", "geteuid", "getgid", "killpg", "getpgid", "setsid", "uname", "wait4", "mkfifo"]
POSIX += ["statvfs"]
LINUX = ["sched_getaffinity", "sched_setaffinity", "memfd_create", "posix_fadvise", "pidfd_open"]
SIGNALS = ["SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGCHLD", "SIGPIPE", "setitimer", "alarm", "pthread_kill"]
MISSING = {
    "darwin": {"os": LINUX, "signal": [], "modules": []},
    "win32": {"os": LINUX + POSIX, "signal": SIGNALS, "modules": ["fcntl", "resource", "pwd", "grp", "termios"]},
}
SCRIPT = """
import json, os, signal, sys
from pathlib import Path

import datasets, inspect_ai, jinja2, numba, openai, rich.console, typer.testing, httpx2, multiprocessing.util
import inspect_ai.log, inspect_ai._eval.task.run
from openai_server import OpenAIServer

platform, missing = sys.argv[1], json.loads(sys.argv[2])
for name in missing["os"]:
    os.__dict__.pop(name, None)
for name in missing["signal"]:
    signal.__dict__.pop(name, None)
for name in missing["modules"]:
    sys.modules[name] = None
sys.platform = platform

from qabench.cli import app
from qabench.retrieval import BM25Index

index = BM25Index([f"word{i % 7} of text {i}" for i in range(5000)])
hits = index.search_batch([f"word{i % 7}" for i in range(600)], 1)
index.save("index.bm25")
assert [hit.positions for hit in hits[:7]] == [[i] for i in range(7)] and len(BM25Index.load("index.bm25")) == 5000

def qabench(*arguments, code=0):
    done = typer.testing.CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, (arguments, done.output, done.exception)
    return done.output

# With "win32" on Linux, Inspect writes a sample of a stopped run twice. The names stay removed.
sys.platform = "darwin"
with OpenAIServer() as server:
    server.reply = lambda body: "Mars, 1998 and Lima."
    model = ["--model", "m", "--base-url", server.base_url]
    options = ["--config", "sample", "--log-dir", "logs", "--max-connections", 1, "--no-cache", "--max-calls", 3]
    stopped = typer.testing.CliRunner().invoke(app, [*map(str, ["run", "fanoutqa", *model, *options])])
    assert stopped.exit_code, stopped.output
    (log,) = Path("logs").glob("*.eval")
    qabench("run", "--resume", log, *model)
    sys.platform = platform
logs = sorted(Path("logs").glob("*.eval"))
print(qabench("score", "fanoutqa", logs[-1]))
qabench("report", "logs", "--output", "report")
left = [path.name for path in Path("logs").iterdir() if path.name.startswith(".")]
assert Path("report/index.html").stat().st_size > 10_000 and left == [], left
"""


@pytest.mark.parametrize("platform", MISSING)
def test_commands_without_what_other_systems_lack(tmp_path: Path, platform: str) -> None:
    command = [sys.executable, "-P", "-c", SCRIPT, platform, json.dumps(MISSING[platform])]
    environment: dict[str, Any] = os.environ | {"PYTHONPATH": str(SUPPORT), "QABENCH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "acc.loose" in done.stdout and "12 answered" in done.stdout
