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
    r"""The verdicts of an evaluator's reply.

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
    """The most frequent verdict on each segment; of equally frequent verdicts the first (cot-cons).

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
    """The shortest reply that ``read_reply`` reads as these verdicts."""
    wrong = [str(number) for number, factual in enumerate(verdicts, start=1) if not factual]
    return f"{ANSWER}{', '.join(wrong)}" if wrong else ALL_CORRECT


def _ids(text: str, n_segments: int) -> set[int]:
    digits = [found.lstrip("0") or "0" for found in re.findall(r"\d+", text)]
    return {number for found in digits if len(found) <= LONGEST_ID and (number := int(found)) <= n_segments}


def _verdicts(errors: Iterable[int], n_segments: int) -> Verdicts:
    wrong = set(errors)
    return tuple(number not in wrong for number in range(1, n_segments + 1))
