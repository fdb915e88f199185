"""Campaigns of faults: many small cases with a random fault in each, counted by what was observed."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Case = Callable[[random.Random, Path], str]


@dataclass(frozen=True)
class Campaign:
    """One kind of fault.

    Attributes:
        name: for the command line.
        fault: what is done.
        expected: what must be observed, in words.
        case: runs one case in an empty folder and returns what was observed. It raises for anything unexpected.
        short: how many cases CI runs.
        needs: says why the campaign cannot run here; None if it can.
    """

    name: str
    fault: str
    expected: str
    case: Case
    short: int = 25
    needs: Callable[[], str | None] = lambda: None


@dataclass
class Result:
    """The outcome of a campaign: how often each observation was made, and the cases that went wrong, by seed."""

    campaign: Campaign
    observed: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)

    @property
    def tries(self) -> int:
        return self.observed.total() + len(self.wrong)

    def row(self) -> str:
        """A row of the table in docs/reliability.md."""
        observed = ", ".join(f"{count:,} {what}" for what, count in self.observed.most_common())
        observed += f", **{len(self.wrong)} WRONG**" if self.wrong else ""
        parts = (self.campaign.name, self.campaign.fault, f"{self.tries:,}", self.campaign.expected, observed)
        return f"| {' | '.join(parts)} |"


def run(campaign: Campaign, cases: int | None, seconds: float = float("inf"), first_seed: int = 0) -> Result:
    """Runs cases with the seeds ``first_seed``, ``first_seed + 1``, ... until either limit is reached."""
    result = Result(campaign)
    begin = time.monotonic()
    seed = first_seed
    while (cases is None or seed < first_seed + cases) and time.monotonic() - begin < seconds:
        folder = Path(tempfile.mkdtemp(prefix="qabench-fault-"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result.observed[campaign.case(random.Random(seed), folder)] += 1
        except Exception as error:  # the harness reports whatever escaped
            result.wrong.append((seed, f"{type(error).__name__}: {error}"[:300]))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        seed += 1
    return result


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The data with one random damage: a flipped bit, changed, exchanged, lost or repeated bytes, or a cut-off end."""
    changed = bytearray(data)
    place = chance.randrange(len(changed))
    size = min(chance.choice((1, 4, 16, 512, 4096)), len(changed) - place)
    kind = chance.randrange(10)
    if kind < 4:
        changed[place] ^= 1 << chance.randrange(8)
    elif kind == 4:
        changed[place : place + size] = chance.randbytes(size)
    elif kind == 5:
        changed[place : place + size] = bytes(size)
    elif kind == 6:
        del changed[place:]
    elif kind == 7:
        del changed[place : place + size]
    elif kind == 8:
        other = chance.randrange(len(changed) - size + 1)
        changed[place : place + size], changed[other : other + size] = (
            changed[other : other + size],
            changed[place : place + size],
        )
    else:
        page = 4096  # an old or another block of the file written in the wrong place
        first, second = (chance.randrange(0, len(changed), page) for _ in range(2))
        changed[first : first + page] = changed[second : second + page]
    return bytes(changed)
