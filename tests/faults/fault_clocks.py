"""Jumps of the clock, by years in both directions: nothing is lost, and nobody waits forever."""

from __future__ import annotations

import random
import time
from pathlib import Path
from unittest import mock

from fault_harness import Campaign

from qabench.io.files import replacing, sweep, write_text
from qabench.io.http import retry_after
from qabench.llm import cache as cache_module
from qabench.llm.cache import LONGEST_LEASE, ReplyCache
from qabench.llm.exchange import ChatRequest, Reply

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


def jumping_claims(chance: random.Random, folder: Path) -> str:
    """Three owners claim, renew, release and settle while the clock jumps."""
    clock = Clock(chance)
    requests = [ChatRequest("m", (("user", str(i)),)) for i in range(6)]
    keys = {request.key("http://a/v1"): request for request in requests}
    paid: dict[bytes, int] = dict.fromkeys(keys, 0)
    stored: dict[bytes, Reply] = {}
    with mock.patch.object(cache_module.time, "time", clock.time):
        caches = [ReplyCache(folder / "replies.sqlite", lease=30.0) for _ in range(3)]
        for step in range(60):
            if chance.random() < 0.3:
                clock.jump()
            key, cache = chance.choice(list(keys)), chance.choice(caches)
            claimed = cache.claim(key)
            if isinstance(claimed, Reply):
                if claimed != stored[key]:
                    raise AssertionError("another reply")
            elif claimed and chance.random() < 0.6:
                paid[key] += 1
                stored.setdefault(key, cache.settle(key, keys[key], Reply(f"reply {step}")))
            elif claimed and chance.random() < 0.5:
                cache.release(key)
            if chance.random() < 0.2:
                cache.renew()
        clock.offset += LONGEST_LEASE + 1  # the owners stay alive, but do not renew
        for key in set(keys) - set(stored):
            if caches[0].claim(key) is not True:
                raise AssertionError("a claim holds forever")
        found = caches[1].find(keys)
        for cache in caches:
            cache.close()
    if found != stored:
        raise AssertionError("a reply is lost")
    if max(paid.values()) > 1:
        raise AssertionError("paid twice by owners that asked in turn")
    return "all replies kept, no claim holds forever"


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
    Campaign(
        "clock-claims", "clock jumps by up to 10 years, claims", "no reply lost or paid twice", jumping_claims, 20
    ),
    Campaign("clock-files", "clock jumps while a file is written", "old or new content", jumping_files),
    Campaign("clock-dates", "Retry-After read with a wrong clock", "0 or more seconds, or none", jumping_dates),
]
