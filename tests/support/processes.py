"""Commands of qabench in processes of their own, and processes that must end by themselves."""

import os
import subprocess
import sys
import time
from pathlib import Path


def qabench(*arguments: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command, which must end with this exit code and without a traceback; an empty variable
    is removed.
    """
    env = {**os.environ, "COLUMNS": "200", **environment}
    env = {name: value for name, value in env.items() if environment.get(name) != ""}
    command = [sys.executable, "-P", "-m", "qabench", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def wait_for_end(pid: int, seconds: float = 60.0) -> None:
    """Wait until a process has ended, or is a zombie that nobody has collected."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.05)
    raise AssertionError(f"the process {pid} still runs")
