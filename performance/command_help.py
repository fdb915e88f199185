"""The time until ``--help`` is printed, in CPU seconds of a new process; next to Python that only
imports Typer.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator

from cases import Case, Measured

COMMANDS = ((), ("score",), ("run",), ("report",), ("wiki", "prefetch"), ("fanoutqa", "submit"))
RUNS = 3  # the fastest counts: what slows a process down is other work on the machine


def cases(size: int | None = None) -> Iterator[Case]:
    bare = {
        "python -c pass": functools.partial(started, "-c", "pass"),
        "python -c 'import typer.main'": functools.partial(started, "-c", "import typer.main"),
    }
    for command in COMMANDS:
        yield Case(
            " ".join(("qabench", *command, "--help")),
            functools.partial(started, "-m", "qabench", *command, "--help"),
            bare,
            None,
            warm=False,
        )


def started(*arguments: str) -> Measured:
    """The CPU time of a new Python process."""
    seconds = []
    for _ in range(RUNS):
        before = os.times()
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        seconds.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return Measured(min(seconds))
