"""What an evaluator of factuality replied about the segments of a response, as verdicts: FELM's reply protocol.

Source: ``eval/eval.py`` of hkust-nlp/felm (Chen et al., NeurIPS 2023, https://arxiv.org/abs/2310.00741).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from qabench.errors import InputError

REPLY_FORMATS = ("answer", "vicuna")
ALL_CORRECT = {"answer": ("ALL_CORRECT",), "vicuna": ("ALL_CORRECT", r"ALL\_CORRECT")}
ANSWER = "Answer: "
LONGEST_ID = 9  # digits; nothing has that many segments, and Python converts no integer of thousands of digits

Verdicts = tuple[bool, ...]
"""For each segment whether it is factual."""


def parse_reply(reply: str, n_segments: int, reply_format: str = "answer") -> Verdicts | None:
    r"""The verdicts of an evaluator's reply.

    The segments whose ids (from 1) stand after the first "Answer: " are errors, and none is where the reply contains
    ALL_CORRECT. Ids that are no segment's are passed over; upstream takes an id 0 for the last segment.

    Args:
        reply: the text.
        n_segments: how many segments the response has.
        reply_format: "answer", as above; "vicuna": the ids may stand anywhere in the reply, and ALL\_CORRECT means
            ALL_CORRECT (upstream knows that form only).

    Returns:
        True = factual, one a segment; None: neither ALL_CORRECT nor the id of a segment was found. Upstream takes
        that for all correct.
    """
    if any(marker in reply for marker in ALL_CORRECT[reply_format]):
        return (True,) * n_segments
    text = reply if reply_format == "vicuna" else reply.partition(ANSWER)[2]
    digits = [found.lstrip("0") for found in re.findall(r"\d+", text)]
    ids = [int(found) for found in digits if 0 < len(found) <= LONGEST_ID]
    errors = {number for number in ids if 1 <= number <= n_segments}
    return tuple(number not in errors for number in range(1, n_segments + 1)) if errors else None


def majority(samples: Sequence[Sequence[bool]]) -> Verdicts:
    """For each segment the verdict most frequent over the samples; among equals, the one that came first (cot-cons).

    Raises:
        InputError: there are no samples, or they differ in length.
    """
    if len({len(sample) for sample in samples}) != 1:
        raise InputError(f"a majority needs samples of one length; got lengths {[len(sample) for sample in samples]}")
    # max gives the first of the largest, and so the earliest sample's verdict.
    return tuple(max(verdicts, key=verdicts.count) for verdicts in zip(*samples, strict=True))
