"""FELM's claims: reads them from a model's reply, and derives verdicts on segments from verdicts on their claims."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qabench.benchmarks.felm.replies import Reading, Verdicts

HEADING = re.compile(r"\W*segment\s+(\d{1,9})\b", re.IGNORECASE)
CLAIM = re.compile(r"\W*claim\s+\d+\s*[.:)]\s*(\S.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FelmClaim:
    """A claim and the number, from 1, of the segment that makes it."""

    segment: int
    text: str


def read_claims(reply: str, n_segments: int) -> tuple[FelmClaim, ...]:
    """The claims of a reply with a heading "Segment 1:" and lines "Claim 1. ..." for each segment.

    Claims under the heading of an unknown segment are ignored. Without headings, all claims belong to the segment if
    there is only one.
    """
    segment = 1 if n_segments == 1 else 0
    claims = []
    for line in reply.splitlines():
        if heading := HEADING.match(line):
            segment = int(heading[1])
        elif (claim := CLAIM.match(line)) and 1 <= segment <= n_segments:
            claims.append(FelmClaim(segment, claim[1].strip()))
    return tuple(claims)


def on_segments(reading: Reading, claims: Sequence[FelmClaim], n_segments: int) -> Reading:
    """The verdicts on segments from those on their claims: a segment is wrong if one of its claims is wrong."""

    def judged(verdicts: Verdicts) -> Verdicts:
        wrong = {claim.segment for claim, factual in zip(claims, verdicts, strict=True) if not factual}
        return tuple(number not in wrong for number in range(1, n_segments + 1))

    readable = None if reading.readable is None else judged(reading.readable)
    return Reading(judged(reading.official), readable, reading.missing)
