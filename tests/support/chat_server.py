"""A real OpenAI-compatible server on loopback: ``transformers serve``, with a tiny model made here
unless given one.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS_TO_START = 180
NEEDED = "import fastapi, torch, transformers, uvicorn"
HOW = "install torch and transformers[serving], here or elsewhere; set QABENCH_TRANSFORMERS to the program transformers"


def program() -> Path:
    """Return the program ``transformers``: that of QABENCH_TRANSFORMERS, of this environment, or on
    the PATH.
    """
    beside = shutil.which("transformers", path=Path(sys.executable).parent)
    program = os.environ.get("QABENCH_TRANSFORMERS") or beside or shutil.which("transformers")
    if not program:
        pytest.skip(f"needs the program transformers: {HOW}")
    path = Path(program).absolute()
    python = path.with_name("python")
    if not python.exists() or subprocess.run([python, "-c", NEEDED], capture_output=True).returncode:
        pytest.skip(f"{path} cannot serve: {HOW}")
    return path


@contextmanager
def served_model(folder: Path, weights: Path | None = None) -> Iterator[tuple[str, str]]:
    """Yield the base URL and the model of a running server that keeps its files in ``folder``."""
    transformers = program()
    model = str(weights or folder / "tiny")
    environment = os.environ | {"HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    if weights is None:
        script = Path(__file__).with_name("tiny_language_models.py")
        make = [transformers.with_name("python"), script, model]
        subprocess.run(make, check=True, env=environment, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [transformers, "serve", model, "--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server, folder / "log")
        yield f"http://127.0.0.1:{port}/v1", model
    finally:
        server.terminate()
        server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < give_up and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=60):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
