"""Functions that tests run in the processes of a Ray cluster, which import them from here."""

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
    """Return a function from rows to columns; its process is killed once, at the row with the
    number 7.
    """
    return partial(_double, marks)


def _double(marks: Path, rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    mark = marks / "killed"
    if any(row["number"] == 7 for row in rows) and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"double": [2 * row["number"] for row in rows]}


def on_a_node_that_is_lost(mark: Path, head: str) -> Callable[[int], tuple[int, str]]:
    """Return a function from a number to (number, node), which kills the node that is not the head
    at its first call. On the head it waits until then.
    """
    return partial(_node_of, mark, head)


def _node_of(mark: Path, head: str, number: int) -> tuple[int, str]:
    import ray

    node = ray.get_runtime_context().get_node_id()
    if node != head:
        mark.touch()
        # the raylet, without which Ray considers the node lost
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return number, node


def refusing(number: int) -> int:
    """Raise an error for 2, end the process for 3, and fail for 4."""
    if number == 2:
        raise InputError("2 is refused")
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        raise KeyError("four")
    return number


def processes_with(text: str) -> list[str]:
    """Return the commands of running processes that contain a text, except this process."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if text in command and path.parent.name != str(os.getpid()):
            commands.append(command)
    return commands


def constant(function: Any) -> Any:
    """Return the function: the ``load`` of a function without a state."""
    return function
