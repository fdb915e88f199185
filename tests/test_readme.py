"""README's code runs as it stands there: Python blocks in one session, commands in a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CARDS = sorted([*ROOT.glob("loading_scripts/*/README.md"), *ROOT.glob("metrics/*/README.md")])


class Model(BaseHTTPRequestHandler):
    """Answers every chat as a model that knows one thing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "1998"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def model_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def script_of(text: str) -> str:
    """The blocks as one Python program; of a shell block the lines that call qabench (set-up lines are CI's)."""
    parts = ["import subprocess"]
    for language, code in BLOCK.findall(text):
        if language == "python":
            parts.append(code)
        else:
            commands = [line for line in code.splitlines() if line.startswith("qabench ")]
            parts += [f"subprocess.run({command!r}, shell=True, check=True)" for command in commands]
    return "\n".join(parts)


def run(text: str, folder: Path, **environment: str) -> str:
    scripts = sysconfig.get_path("scripts")
    env = {**os.environ, **environment, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script_of(text)], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme(tmp_path: Path, model_url: str) -> None:
    out = run((ROOT / "README.md").read_text(encoding="utf-8"), tmp_path, MODEL_URL=model_url, HF_HUB_OFFLINE="0")
    for printed in ("fanout_acc|references:", "By category", "mrr@3", "wins  ties  losses", "registered"):
        assert printed in out
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 12


def test_readme_begins_with_the_two_commands_that_ci_runs() -> None:
    blocks = [code for language, code in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))]
    assert blocks[0] == "pip install . && qabench quickstart\n"
    assert blocks[1] == 'pip install ".[test]" && pytest\n'


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *CARDS], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
