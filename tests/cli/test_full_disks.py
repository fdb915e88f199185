"""A full standard output and unusable cache folders: one line and exit code 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


def run(*arguments: str, stdout: int, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "qabench", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["--help"], ["--version"]])
def test_a_full_standard_output(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = run(*arguments, stdout=full.fileno())
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "No space left on device" in done.stderr


@pytest.mark.parametrize("command", ["register", "stats", "build"])
def test_a_cache_folder_that_is_a_file(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = str(tmp_path / "file")
    done = run(command, "fanoutqa", stdout=subprocess.DEVNULL, HF_HOME=home, QABENCH_CACHE=home)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr and done.stderr.count("qabench:") <= 1


@pytest.mark.parametrize(("closed", "name"), [(">&-", "output"), ("2>&-", "error")])
@pytest.mark.parametrize("arguments", ["list", "--help", "env --json"])
def test_a_closed_stream_is_one_line(closed: str, name: str, arguments: str) -> None:
    command = f'"{sys.executable}" -P -m qabench {arguments} {closed}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 1
    assert (
        done.stdout + done.stderr == f"qabench: standard {name} is closed; redirect it to a file, such as /dev/null\n"
    )
