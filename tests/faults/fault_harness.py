"""Campaigns of faults: many small cases with a random fault in each, counted by what was observed."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Case = Callable[[random.Random, Path], str]
LONGEST = 120.0  # seconds; a process that takes longer hangs


@dataclass(frozen=True)
class Campaign:
    """One kind of fault.

    Attributes:
        name: the id of its test.
        expected: what must be observed, in words.
        case: runs one case in an empty folder and returns what was observed. It raises for anything
            unexpected.
        short: how many cases CI runs.
        needs: says why the campaign cannot run here; None if it can.
    """

    name: str
    expected: str
    case: Case
    short: int = 25
    needs: Callable[[], str | None] = lambda: None


def run(campaign: Campaign, cases: int, first_seed: int) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Run cases with the seeds from ``first_seed`` on. Return the observations, and the wrong ones
    by seed.
    """
    observed: Counter[str] = Counter()
    wrong = []
    for seed in range(first_seed, first_seed + cases):
        folder = Path(tempfile.mkdtemp(prefix="qabench-fault-"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                observed[campaign.case(random.Random(seed), folder)] += 1
        except Exception as error:  # whatever escaped
            wrong.append((seed, f"{type(error).__name__}: {error}"[:300]))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return observed, wrong


class Command:
    """A running ``qabench`` command whose standard error is kept in the folder of its case."""

    def __init__(self, folder: Path, *arguments: object, **environment: str) -> None:
        handle, name = tempfile.mkstemp(dir=folder, prefix="stderr-")
        self._errors = Path(name)
        command = [sys.executable, "-P", "-m", "qabench", *map(str, arguments)]
        null = subprocess.DEVNULL
        with os.fdopen(handle, "w") as errors:
            variables = os.environ | environment
            self._process = subprocess.Popen(command, env=variables, stdin=null, stdout=null, stderr=errors)

    @property
    def errors(self) -> str:
        """Return what it has written on standard error."""
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def kill(self, after: float) -> bool:
        """Kill it after this many seconds. Return whether it was still running."""
        try:
            self._process.wait(after)
            return False
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return True

    def wait(self) -> int:
        """Return its exit code. AssertionError for a traceback."""
        code = self._process.wait(LONGEST)
        if "Traceback" in self.errors:
            raise AssertionError(f"traceback: {self.errors[-300:]}")
        return code


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The data with one random damage: a flipped bit, changed, copied or lost bytes, or a cut-off
    end.
    """
    changed = bytearray(data)
    place = chance.randrange(len(changed))
    size = min(chance.choice((1, 4, 16, 512, 4096)), len(changed) - place)
    other = chance.randrange(len(changed) - size + 1)
    kind = chance.randrange(10)
    if kind < 4:
        changed[place] ^= 1 << chance.randrange(8)
    elif kind < 7:
        changed[place : place + size] = (chance.randbytes(size), bytes(size), changed[other : other + size])[kind - 4]
    elif kind == 7:
        del changed[place:]
    elif kind == 8:
        del changed[place : place + size]
    else:
        page = 4096  # an old or another block of the file written in the wrong place
        first, second = (chance.randrange(0, len(changed), page) for _ in range(2))
        changed[first : first + page] = changed[second : second + page]
    return bytes(changed)
