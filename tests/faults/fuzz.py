"""Random and mutated inputs for every reader and parser, reproducible by a seed."""

import random
import time
from collections import Counter

from fuzz_targets import TARGETS, check

PIECES: list[bytes | str] = [
    bytes([byte]) for byte in b"[]{}\":,.-+0123456789eE \n\t\\/<>&;#'()!?=|*_`~^%$@\x00\x1b\x7f"
]
PIECES += ["é", "½", "²", "٣", "\u2028", "\ufeff", "\U0001f600", "İ", "ﬁ", "\u202e", b"\xff", b"\xc3", b"\xed\xa0\xbd"]
WORDS = r"\ud83d \u0000 null true NaN Infinity 1e999 &a *a <![ <!-- ]]> </ &#x110000; yes no e.g. Dr. http:// ?key="
PIECES += WORDS.split()
PIECES += ["<td colspan=", "'''", "{}" * 60, "[" * 120, "9" * 5000, "segment ", "claim ", "Sources:", "[1]", "A1" * 40]
BYTES = [piece if isinstance(piece, bytes) else piece.encode() for piece in PIECES]
LONGEST = 400  # of most inputs


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    """A good input with a few random changes, or random pieces."""
    if chance.random() < 0.1:
        return b"".join(chance.choices(BYTES, k=chance.randint(0, 12)))
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        place = chance.randrange(len(data) + 1)
        kind = chance.random()
        if kind < 0.4:
            data[place:place] = chance.choice(BYTES)
        elif kind < 0.6:
            del data[place : place + chance.choice((1, 1, 2, 8, 60))]
        elif kind < 0.75 and data:
            data[place % len(data)] = chance.randrange(256)
        elif kind < 0.9 and len(data) < LONGEST:
            end = place + chance.choice((1, 5, 40))
            data[place:place] = data[place:end] * chance.choice((1, 1, 2, 5))
        else:
            other = chance.choice(seeds)
            data[place:] = other[chance.randrange(len(other)) :]
    return bytes(data)


def fuzz(inputs: int, minutes: float, seed: int) -> tuple[Counter[str], list[str]]:
    """Run inputs of all targets in turn, more of the fast ones. Return the counts, and what broke
    which target.
    """
    schedule = [name for name in TARGETS for _ in range(TARGETS[name].share)]
    chance = random.Random(seed)
    problems: list[str] = []
    counts: Counter[str] = Counter()
    give_up = time.monotonic() + minutes * 60
    while counts.total() < inputs and time.monotonic() < give_up and len(problems) < 20:
        for name in schedule:
            data = mutated(chance, list(TARGETS[name].seeds))
            try:
                check(TARGETS[name], data)
            except Exception as error:
                problems.append(f"{name}: {type(error).__name__}: {error} for {data!r:.200}")
            counts[name] += 1
    return counts, problems
