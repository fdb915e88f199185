"""Processes that must end by themselves."""

import os
import time
from pathlib import Path


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
