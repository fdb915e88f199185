"""FELM's texts as evaluators see them: numbered segments and claims, references, and what the replies say of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qabench.scoring.felm_replies import ANSWER, Verdicts, parse_reply

FIRST_LETTER = re.compile("[A-Za-z]")
HEADING = re.compile(r"\W*segment\s+(\d{1,9})\b", re.IGNORECASE)
CLAIM = re.compile(r"\W*claim\s+\d+\s*[.:)]\s*(\S.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FelmClaim:
    """A claim and the number, from 1, of the segment that makes it."""

    segment: int
    text: str


def numbered(texts: Sequence[str]) -> str:
    """The texts a line each, numbered from 1; of each what stands from its first ASCII letter on, perhaps nothing."""
    return "\n".join(f"{i}. {_from_first_letter(text)}" for i, text in enumerate(texts, start=1))


def read_claims(reply: str, n_segments: int) -> tuple[FelmClaim, ...]:
    """The claims of a reply with a heading "Segment 1:" and lines "Claim 1. ..." for each segment.

    Claims below the heading of no segment are passed over; without headings, all are those of an only segment.
    """
    segment = 1 if n_segments == 1 else 0
    claims = []
    for line in reply.splitlines():
        if heading := HEADING.match(line):
            segment = int(heading[1])
        elif (claim := CLAIM.match(line)) and 1 <= segment <= n_segments:
            claims.append(FelmClaim(segment, claim[1].strip()))
    return tuple(claims)


def verdicts_of(reply: str, n_items: int, reply_format: str, zero_is_last: bool = False) -> Verdicts | None:
    """``parse_reply``; with ``zero_is_last`` an id 0 marks the last item, as upstream has it."""
    verdicts = parse_reply(reply, n_items, reply_format)
    text = reply if reply_format == "vicuna" else reply.partition(ANSWER)[2]
    all_correct = verdicts is not None and all(verdicts)  # only the words for it make that
    if not zero_is_last or all_correct or not any(not found.strip("0") for found in re.findall(r"\d+", text)):
        return verdicts
    return (*(verdicts or (True,) * n_items)[:-1], False)


def segment_verdicts(verdicts: Verdicts, claims: Sequence[FelmClaim], n_segments: int) -> Verdicts:
    """Verdicts on segments from those on their claims: a segment is factual unless one of its claims is not."""
    wrong = {claim.segment for claim, factual in zip(claims, verdicts, strict=True) if not factual}
    return tuple(number not in wrong for number in range(1, n_segments + 1))


def as_reply(verdicts: Verdicts | None) -> str:
    """A reply that ``parse_reply`` reads as these verdicts; None becomes one that it cannot read."""
    if verdicts is None:
        return ""
    wrong = [str(number) for number, factual in enumerate(verdicts, start=1) if not factual]
    return f"{ANSWER}{', '.join(wrong)}" if wrong else "ALL_CORRECT"


def _from_first_letter(text: str) -> str:
    found = FIRST_LETTER.search(text)
    return text[found.start() :] if found else ""
