"""FELM's reply protocol: from an evaluator's reply to one verdict per segment.

Source: ``eval/eval.py`` of hkust-nlp/felm (Chen et al., NeurIPS 2023, https://arxiv.org/abs/2310.00741).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qabench.errors import InputError

ANSWER = "Answer: "
ALL_CORRECT = "ALL_CORRECT"
# The marks that the official script recognizes; a model may write others.
OFFICIAL_MARKS = {"answer": ALL_CORRECT, "vicuna": r"ALL\_CORRECT"}
REPLY_FORMATS = tuple(OFFICIAL_MARKS)
LONGEST_ID = 9  # digits; no response has that many segments, and Python refuses integers of thousands of digits

Verdicts = tuple[bool, ...]
"""One verdict per segment, True = factual."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The verdicts of one reply.

    Attributes:
        official: as the official script reads the reply. A reply without a verdict means "all segments are correct".
        readable: as qabench reads the reply; None if it states no verdict.
        missing: whether there is no reply.
    """

    official: Verdicts
    readable: Verdicts | None
    missing: bool = False


def read_reply(reply: str | None, n_segments: int, reply_format: str = "answer") -> Reading:
    r"""Return the verdicts of an evaluator's reply.

    In the format "answer", the integers after the first "Answer: " are the ids (from 1) of the segments with errors,
    unless the reply contains ALL_CORRECT. In the format "vicuna", the ids may be anywhere in the reply.

    The official reading follows ``eval/eval.py`` exactly: without an id, all segments are correct; an id 0 means the
    last segment; and in the format "vicuna" only ``ALL\_CORRECT`` (with the backslash) is recognized. The readable one
    ignores an id 0, accepts ALL_CORRECT with or without the backslash in the format "vicuna", and is None if the reply
    contains neither an id nor ALL_CORRECT. Both ignore ids above ``n_segments``.

    Args:
        reply: the text; None if there is no reply.
        n_segments: the number of segments of the response.
        reply_format: one of ``REPLY_FORMATS``.
    """
    all_correct = (True,) * n_segments
    if reply is None:
        return Reading(all_correct, None, missing=True)
    ids = _ids(reply if reply_format == "vicuna" else reply.partition(ANSWER)[2], n_segments)
    official = readable = None
    if OFFICIAL_MARKS[reply_format] in reply:
        official = readable = all_correct
    elif ALL_CORRECT in reply:
        readable = all_correct
    elif ids - {0}:
        readable = _verdicts(ids, n_segments)
    return Reading(official or _verdicts({i or n_segments for i in ids}, n_segments), readable)


def majority(samples: Sequence[Sequence[bool]]) -> Verdicts:
    """Return the most frequent verdict on each segment; of equally frequent verdicts the first (cot-cons).

    Args:
        samples: the verdicts of each sampled reply, in order.

    Raises:
        InputError: the lists are empty or have different lengths.
    """
    if len({len(sample) for sample in samples}) != 1:
        raise InputError(f"a majority needs samples of one length; got lengths {[len(sample) for sample in samples]}")
    # max returns the first maximum, which is the earliest sample's verdict.
    return tuple(max(verdicts, key=verdicts.count) for verdicts in zip(*samples, strict=True))


def as_reply(verdicts: Verdicts) -> str:
    """Return the shortest reply that ``read_reply`` reads as these verdicts."""
    wrong = [str(number) for number, factual in enumerate(verdicts, start=1) if not factual]
    return f"{ANSWER}{', '.join(wrong)}" if wrong else ALL_CORRECT


def _ids(text: str, n_segments: int) -> set[int]:
    ids = [digits.lstrip("0") or "0" for digits in re.findall(r"\d+", text)]
    return {number for digits in ids if len(digits) <= LONGEST_ID and (number := int(digits)) <= n_segments}


def _verdicts(errors: Iterable[int], n_segments: int) -> Verdicts:
    wrong = set(errors)
    return tuple(number not in wrong for number in range(1, n_segments + 1))


HEADING = re.compile(r"\W*segment\s+(\d{1,9})\b", re.IGNORECASE)
CLAIM = re.compile(r"\W*claim\s+\d+\s*[.:)]\s*(\S.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FelmClaim:
    """A claim and the number, from 1, of the segment that makes it."""

    segment: int
    text: str


def read_claims(reply: str, n_segments: int) -> tuple[FelmClaim, ...]:
    """Return the claims of a reply with a heading "Segment 1:" and lines "Claim 1. ..." for each segment.

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
    """Return the verdicts on segments from those on their claims: a segment is wrong if one of its claims is wrong."""

    def judged(verdicts: Verdicts) -> Verdicts:
        wrong = {claim.segment for claim, factual in zip(claims, verdicts, strict=True) if not factual}
        return tuple(number not in wrong for number in range(1, n_segments + 1))

    readable = None if reading.readable is None else judged(reading.readable)
    return Reading(judged(reading.official), readable, reading.missing)
