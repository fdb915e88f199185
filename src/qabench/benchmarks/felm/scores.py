"""How FELM reads an evaluator's replies, and counts segments and responses.

The positive class of precision, recall and F1 is the error. The counts have the official script's
names: ``tp`` are factual segments judged factual, ``tn`` errors that were found, ``fp`` errors
judged factual, ``fn`` factual segments judged wrong. The formulas take counts or NumPy arrays of
counts. A score whose denominator is 0 is undefined: NaN for arrays, None in results.

Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741),
and ``eval/eval.py`` of hkust-nlp/felm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.benchmarks.felm.formulas import COLUMNS, COUNTS, READABLE, RESPONSES
from qabench.data.answers import UNANSWERED, is_list_of
from qabench.data.rows import Json, Row
from qabench.errors import InputError, unknown_name

ANSWER = "Answer: "
ALL_CORRECT = "ALL_CORRECT"
# The marks that the official script recognizes. A model may write others.
OFFICIAL_MARKS = {"answer": ALL_CORRECT, "vicuna": r"ALL\_CORRECT"}
REPLY_FORMATS = tuple(OFFICIAL_MARKS)
# Other forms in which models write "Answer: ", such as "Answer:2" and "**Answer:** 2". The official
# script does not read them.
OTHER_MARK = re.compile(r"\banswer[\s*_`]*:", re.IGNORECASE)
# A model may write headings and claims in bold or as a list. Numbers are bounded, see ``ID``.
HEADING = re.compile(r"\W*segment\s+(\d{1,9})\b", re.IGNORECASE)
CLAIM = re.compile(r"\W*claim\s+\d+\s*[.:)]\s*(\S.*)", re.IGNORECASE)
# No response has a billion segments, and Python refuses integers of thousands of digits.
ID = re.compile(r"(?<!\d)0*(\d{1,9})(?!\d)")

# Maps the name of a count to the pair of verdict and label (True = factual) that it counts.
CELLS = {
    "tp": (True, True),
    "tn": (False, False),
    "fp": (True, False),
    "fn": (False, True),
}
Verdicts = tuple[bool, ...]
"""One verdict per segment, True = factual."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The verdicts of one reply.

    Attributes:
        official: the verdicts as the official script reads the reply. A reply without a verdict
            means "all segments are correct".
        readable: the verdicts as qabench reads the reply. None if it states no verdict.
        missing: whether there is no reply.
    """

    official: Verdicts
    readable: Verdicts | None
    missing: bool = False


def read_reply(
    reply: str | None,
    n_segments: int,
    reply_format: str = "answer",
    claims: Sequence[Row] | None = None,
) -> Reading:
    r"""Return the verdicts of an evaluator's reply about segments, or about ``claims``.

    In the format "answer", the integers after the first "Answer: " are the ids (from 1) of the
    segments with errors, unless the reply contains ALL_CORRECT. In the format "vicuna", the ids may
    be anywhere in the reply. A segment is wrong if one of its claims is wrong.

    The official reading follows ``eval/eval.py`` exactly: without an id, all segments are correct.
    An id 0 means the last segment, and in the format "vicuna" only ``ALL\_CORRECT`` (with the
    backslash) is recognized. qabench's reading (``readable``) ignores an id 0, accepts ALL_CORRECT
    with or without the backslash in the format "vicuna", and is None if the reply contains neither
    an id nor ALL_CORRECT. It also reads "Answer:" in other forms, such as "Answer:2" and
    "**Answer:** 2". Both readings ignore ids of unknown segments or claims.
    """

    n = n_segments if claims is None else len(claims)

    def known_ids(text: str) -> set[int]:
        return {id for id in map(int, ID.findall(text)) if id <= n}

    def verdicts(ids: set[int]) -> Verdicts:
        wrong = ids
        if claims is not None:
            # One wrong claim makes its whole segment wrong.
            wrong = {claims[id - 1]["segment"] for id in ids}
        return tuple(number not in wrong for number in range(1, n_segments + 1))

    none: set[int] = set()
    if reply is None:
        return Reading(verdicts(none), None, missing=True)
    _, mark, after_mark = reply.partition(ANSWER)
    ids = known_ids(after_mark)
    if reply_format == "vicuna":
        # The authors search Vicuna's whole reply for ids.
        ids = known_ids(reply)
    # If a reply has both ALL_CORRECT and ids, ALL_CORRECT wins.
    says_correct = OFFICIAL_MARKS[reply_format] in reply
    official = none
    if not says_correct:
        # The script uses id - 1 as an index, so the id 0 becomes the index -1, the last segment.
        official = {id or n for id in ids}
    if reply_format == "answer" and not mark and (other_mark := OTHER_MARK.search(reply)):
        ids = known_ids(reply[other_mark.end() :])
    readable = None
    if says_correct or ALL_CORRECT in reply:
        readable = verdicts(none)
    elif ids - {0}:
        readable = verdicts(ids - {0})
    return Reading(verdicts(official), readable)


def check_format(reply_format: str) -> None:
    """Raise InputError for an unknown format of replies."""
    if reply_format not in REPLY_FORMATS:
        raise unknown_name("unknown reply_format", reply_format, REPLY_FORMATS)


def majority(samples: Sequence[Sequence[bool]]) -> Verdicts:
    """Return the most frequent verdict on each segment, as the method cot-cons does."""
    # As in the authors' script, the verdict that occurs first wins a tie: max returns the first
    # maximum.
    winners = []
    for verdicts in zip(*samples, strict=True):
        winners.append(max(verdicts, key=verdicts.count))
    return tuple(winners)


def as_verdicts(value: Any) -> list[bool] | None:
    """Return a list of True and False, or of 1 and 0, as verdicts, or None for anything else."""
    if hasattr(value, "tolist"):
        # ``value`` is an array, a tensor or a Series.
        value = value.tolist()
    if is_list_of(value, bool):
        return list(value)
    if not isinstance(value, list | tuple):
        return None
    # NumPy's booleans and integers are not subclasses of Python's.
    for item in value:
        if not isinstance(item, bool | int | np.bool_ | np.integer) or item not in (0, 1):
            return None
    return [bool(item) for item in value]


def as_reply(verdicts: Verdicts) -> str:
    """Return a reply without reasons that ``read_reply`` reads as these verdicts."""
    wrong = []
    for number, is_factual in enumerate(verdicts, start=1):
        if not is_factual:
            wrong.append(str(number))
    if not wrong:
        return ALL_CORRECT
    return f"{ANSWER}{', '.join(wrong)}"


def read_claims(reply: str, n_segments: int) -> list[Json]:
    """Return the claims of a reply: {"segment", "text"}, with the segment's number from 1.

    A reply has a heading "Segment 1:" and lines "Claim 1. ..." for each segment. Claims under the
    heading of an unknown segment are ignored. So are claims before the first heading, unless there
    is only one segment, to which they then belong.
    """
    # Claims before the first heading belong to no segment, unless there is only one segment.
    segment = 0
    if n_segments == 1:
        segment = 1
    claims: list[Json] = []
    for line in reply.splitlines():
        if heading := HEADING.match(line):
            segment = int(heading[1])
        elif (claim := CLAIM.match(line)) and 1 <= segment <= n_segments:
            claims.append({"segment": segment, "text": claim[1].strip()})
    return claims


@dataclass(frozen=True, slots=True)
class ResponseScore:
    """The verdicts on one response next to its labels.

    Attributes:
        labels: the labels, one per segment, True = factual.
        verdicts: the official verdicts, where replies that state no verdict count as "all segments
            are correct".
        readable: the verdicts of the readable replies only. None if no reply is readable.
        unparsed: the number of replies that state no verdict.
        unanswered: the number of missing replies.
    """

    labels: Verdicts
    verdicts: Verdicts
    readable: Verdicts | None
    unparsed: int = 0
    unanswered: int = 0

    def counts(self) -> dict[str, int]:
        """Return the counts of segments, of responses and of readable replies.

        The names begin with the prefixes "", RESPONSES and READABLE. A response is factual if all
        its segments are. The counts of READABLE are absent if no reply is readable.
        """
        counts = _counts(self.verdicts, self.labels)
        counts |= _counts([all(self.verdicts)], [all(self.labels)], RESPONSES)
        if self.readable is not None:
            counts |= _counts(self.readable, self.labels, READABLE)
        return counts

    def columns(self) -> dict[str, float]:
        """Return the counts as columns of a record, whose positive class is the error."""
        counts = self.counts()
        columns = {}
        for prefix in ("", RESPONSES, READABLE):
            for column, name in zip(COLUMNS, COUNTS, strict=True):
                if prefix + name in counts:
                    columns[prefix + column] = float(counts[prefix + name])
        return columns

    def as_dict(self) -> Json:
        """Return verdicts, readable, unparsed, unanswered, and the official counts of segments."""
        readable = None
        if self.readable is not None:
            readable = list(self.readable)
        return {
            "verdicts": list(self.verdicts),
            "readable": readable,
            "unparsed": self.unparsed,
            "unanswered": self.unanswered,
            **_counts(self.verdicts, self.labels),
        }


def _counts(verdicts: Sequence[bool], labels: Sequence[bool], prefix: str = "") -> dict[str, int]:
    pairs = list(zip(verdicts, labels, strict=True))
    return {prefix + name: pairs.count(cell) for name, cell in CELLS.items()}


def response_score(
    labels: Sequence[bool],
    prediction: Any,
    reply_format: str = "answer",
    claims: Sequence[Row] | None = None,
) -> ResponseScore:
    """Score the verdicts on the segments of one response against human labels.

    Args:
        labels: one label per segment, True (or 1) = factual. There is at least one segment.
        prediction: a list of verdicts, one per segment (True or 1 = factual); an evaluator's reply,
            a string (see ``read_reply``); a list of replies, whose ``majority`` counts (cot-cons);
            or None for a missing reply.
        reply_format: "answer" or "vicuna". Lists of replies are always read as "answer", as in the
            official script.
        claims: the claims that the replies judge. None if they judge the segments.

    Raises:
        InputError: the prediction is of another type, or does not have one verdict per segment.
    """
    verdicts = None if claims else as_verdicts(prediction)
    if verdicts is not None:
        if len(verdicts) != len(labels):
            raise InputError(
                f"{len(verdicts)} verdicts for {len(labels)} segments; give one verdict per segment"
            )
        return ResponseScore(tuple(labels), tuple(verdicts), tuple(verdicts))
    replies = [prediction]
    if isinstance(prediction, list | tuple):
        # The authors' script reads sampled replies of all models in the format "answer".
        replies, reply_format = list(prediction), "answer"
    readings = []
    for reply in replies:
        if reply is UNANSWERED:
            reply = None
        if reply is not None and not isinstance(reply, str):
            raise InputError(
                f"{prediction!r:.80}; allowed: a list of True and False, or of 1 and 0, one per segment; "
                "a reply (string), a list of replies, or None"
            )
        readings.append(read_reply(reply, len(labels), reply_format, claims))
    official = []
    readable = []
    n_missing = 0
    for reading in readings:
        official.append(reading.official)
        n_missing += reading.missing
        if reading.readable is not None:
            readable.append(reading.readable)
    readable_verdicts = None
    if readable:
        readable_verdicts = majority(readable)
    return ResponseScore(
        tuple(labels),
        majority(official),
        readable_verdicts,
        unparsed=len(readings) - len(readable) - n_missing,
        unanswered=n_missing,
    )
