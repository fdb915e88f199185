"""Jumps of the clock, by years in both directions: nothing is lost, and nobody waits forever."""

from __future__ import annotations

import random
import time
from pathlib import Path
from unittest import mock

from fault_harness import Campaign

from qabench.io.files import replacing, sweep, write_text
from qabench.io.http import retry_after

JUMPS = (1.0, 40.0, 4000.0, 86_400.0, 3.2e8)


class Clock:
    """A wall clock that is set forward and back."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.offset = chance, 0.0

    def jump(self) -> None:
        self.offset = self.chance.choice((-1, 1)) * self.chance.choice(JUMPS) * self.chance.random()

    def time(self) -> float:
        return max(0.0, REAL() + self.offset)


REAL = time.time


def jumping_files(chance: random.Random, folder: Path) -> str:
    """A file is written while another process sweeps with another clock: old or new content, or one error."""
    from qabench.errors import QabenchError

    clock, path = Clock(chance), folder / "out.json"
    write_text(path, "old")
    with mock.patch("qabench.io.files.time.time", clock.time):
        clock.jump()
        try:
            with replacing(path) as file:
                file.write(b"new")
                file.flush()
                clock.jump()
                sweep(folder, "out.json")
        except QabenchError:
            observed = "one error, old content"
        else:
            observed = "new content"
    if path.read_text() != observed.split()[-2]:
        raise AssertionError(f"{path.read_text()!r} after {observed}")
    if observed != "new content":
        write_text(path, "new")
    return observed


def jumping_dates(chance: random.Random, folder: Path) -> str:
    """Retry-After as a date, read with a clock that is wrong by years."""
    from email.utils import formatdate

    clock = Clock(chance)
    clock.jump()
    date = formatdate(REAL() + chance.uniform(-1e9, 1e9), usegmt=True)
    if chance.random() < 0.3:
        date = date.replace(date[chance.randrange(len(date))], chance.choice(("", "0", "9", "x", "é")))
    with mock.patch("qabench.io.http.time.time", clock.time):
        seconds = retry_after(date)
    if seconds is not None and not 0 <= seconds < 1e11:
        raise AssertionError(f"{seconds} from {date!r}")
    return "seconds from 0" if seconds is not None else "no date"


CAMPAIGNS = [
    Campaign("clock-files", "clock jumps while a file is written", "old or new content", jumping_files),
    Campaign("clock-dates", "Retry-After read with a wrong clock", "0 or more seconds, or none", jumping_dates),
]
