"""Runs the Python blocks of a card and checks that they print what the card states."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from qabench.errors import QabenchError

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STATED = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)
_SECONDS = 600


def code_of(card: str) -> str:
    """All Python blocks of a card, in order, as one program."""
    return "\n".join(_BLOCK.findall(card))


def stated_output(card: str) -> list[str]:
    """The output of the code according to the card: the comments after ``print`` at the beginning of a line."""
    return _STATED.findall(code_of(card))


def run_card(card: str, folder: Path) -> list[str]:
    """Runs a card's code in a new process without network access, and returns the lines that it prints.

    The process runs in ``folder``. If this contains the built repositories as OWNER/NAME, the stock
    ``load_dataset("OWNER/NAME")`` and ``evaluate.load("OWNER/NAME")`` load them instead of the Hub's: the code runs
    unchanged on the files to publish. The two libraries use new cache folders; models come from the user's cache.

    Raises:
        QabenchError: the card has no code, the code fails, or it does not print a line that the card states.
    """
    code = code_of(card)
    if not code:
        raise QabenchError("the card has no Python code")
    with tempfile.TemporaryDirectory(prefix="qabench-card-", ignore_cleanup_errors=True) as caches:
        # -P: the working folder has a folder with this package's name.
        command = [sys.executable, "-P", "-W", "ignore", "-c", code]
        try:
            done = subprocess.run(
                command, cwd=folder, env=_environment(caches), capture_output=True, text=True, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise QabenchError(f"the card's code did not finish within {_SECONDS} seconds") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise QabenchError(f"the card's code fails: {last[0]}")
    printed = done.stdout.splitlines()
    if missing := _missing(stated_output(card), printed):
        raise QabenchError(f"the card states that its code prints {missing!r}, but it prints {printed}")
    return printed


def _environment(caches: str) -> dict[str, str]:
    new = {name: str(Path(caches, name)) for name in ("HF_DATASETS_CACHE", "HF_MODULES_CACHE")}
    offline = {"HF_HUB_OFFLINE": "1", "QABENCH_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    return {**os.environ, **new, **offline, "PYTHONUTF8": "1"}


def _missing(stated: list[str], printed: list[str]) -> str | None:
    """The first stated line that is not printed in order."""
    lines = iter(printed)
    return next((line for line in stated if line not in lines), None)
