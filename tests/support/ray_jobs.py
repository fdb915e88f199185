"""Functions that tests run in the processes of a Ray cluster, which import them from here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from qabench.errors import InputError

SECONDS = 300


def doubling_killed_once(marks: Path) -> Callable[[list[dict[str, Any]]], dict[str, list[int]]]:
    """A function from rows to columns; its process is killed once, at the row with the number 7."""
    return partial(_double, marks)


def _double(marks: Path, rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    mark = marks / "killed"
    if any(row["number"] == 7 for row in rows) and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"double": [2 * row["number"] for row in rows]}


def waiting(go_on: Path, first: int, number: int) -> tuple[int, str, int]:
    """The number, and the node and the process that it ran in; from ``first``, after the file exists."""
    import ray

    deadline = time.monotonic() + SECONDS
    while number >= first and not go_on.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return number, ray.get_runtime_context().get_node_id(), os.getpid()


def refusing(number: int) -> int:
    """Raises an error for 2, and ends its process for 3."""
    if number == 2:
        raise InputError("2 is refused")
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def processes_with(text: str) -> list[str]:
    """The commands of running processes that contain a text, except this process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if text in command and path.parent.name != str(os.getpid()):
            found.append(command)
    return found


def constant(function: Any) -> Any:
    """Return the function: the ``load`` of a function without a state."""
    return function
