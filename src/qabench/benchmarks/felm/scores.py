"""FELM's reply protocol, and scores of how well an evaluator finds the segments of a response that contain errors.

The positive class of precision, recall and F1 is the error. The counts have the official script's
names: ``tp`` are factual segments judged factual, ``tn`` errors that were found, ``fp`` errors
judged factual, ``fn`` factual segments judged wrong. The formulas take counts or NumPy arrays of
counts. A score whose denominator is 0 is undefined: NaN for arrays, None in ``summary``.

Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741).
``eval/eval.py`` of hkust-nlp/felm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from qabench.answers import UNANSWERED, check_pairs, is_list_of
from qabench.benchmarks.felm.formulas import COUNTS, FUNCTIONS, READABLE, RESPONSES
from qabench.data.rows import Json, Row, grouped
from qabench.errors import InputError, unknown_name

ANSWER = "Answer: "
ALL_CORRECT = "ALL_CORRECT"
# The marks that the official script recognizes. A model may write others.
OFFICIAL_MARKS = {"answer": ALL_CORRECT, "vicuna": r"ALL\_CORRECT"}
REPLY_FORMATS = tuple(OFFICIAL_MARKS)
# How models write the mark in other ways, such as "Answer:2" and "**Answer:** 2". The official script
# does not read these.
OTHER_MARK = re.compile(r"\banswer[\s*_`]*:", re.IGNORECASE)
HEADING = re.compile(r"\W*segment\s+(\d{1,9})\b", re.IGNORECASE)
CLAIM = re.compile(r"\W*claim\s+\d+\s*[.:)]\s*(\S.*)", re.IGNORECASE)
# No response has a billion segments, and Python refuses integers of thousands of digits.
ID = re.compile(r"(?<!\d)0*(\d{1,9})(?!\d)")

CELLS = dict(zip(COUNTS, [(True, True), (False, False), (True, False), (False, True)], strict=True))
"""Count -> the pair of verdict and label that it counts."""
Verdicts = tuple[bool, ...]
"""One verdict per segment, True = factual."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The verdicts of one reply.

    Attributes:
        official: as the official script reads the reply. A reply without a verdict means "all
            segments are correct".
        readable: as qabench reads the reply. None if it states no verdict.
        missing: whether there is no reply.
    """

    official: Verdicts
    readable: Verdicts | None
    missing: bool = False


def read_reply(
    reply: str | None, n_segments: int, reply_format: str = "answer", claims: Sequence[Row] | None = None
) -> Reading:
    r"""Return the verdicts of an evaluator's reply about segments, or about claims (see ``read_claims``).

    In the format "answer", the integers after the first "Answer: " are the ids (from 1) of the
    segments with errors, unless the reply contains ALL_CORRECT. In the format "vicuna", the ids may
    be anywhere in the reply. A segment is wrong if one of its claims is wrong.

    The official reading follows ``eval/eval.py`` exactly: without an id, all segments are correct.
    An id 0 means the last segment, and in the format "vicuna" only ``ALL\_CORRECT`` (with the
    backslash) is recognized. The readable one ignores an id 0, accepts ALL_CORRECT with or without
    the backslash in the format "vicuna", and is None if the reply contains neither an id nor
    ALL_CORRECT. It also reads "Answer:" in other forms, such as "Answer:2" and "**Answer:** 2". Both
    ignore ids of unknown segments or claims.
    """

    def verdicts(ids: set[int]) -> Verdicts:
        wrong = ids if claims is None else {claims[id - 1]["segment"] for id in ids}
        return tuple(number not in wrong for number in range(1, n_segments + 1))

    if reply is None:
        return Reading(verdicts(set()), None, missing=True)
    n = n_segments if claims is None else len(claims)
    text = reply if reply_format == "vicuna" else reply.partition(ANSWER)[2]
    ids = {int(number) for number in ID.findall(text) if int(number) <= n}
    says_correct = OFFICIAL_MARKS[reply_format] in reply
    official = set() if says_correct else {id or n for id in ids}
    if reply_format == "answer" and ANSWER not in reply and (mark := OTHER_MARK.search(reply)):
        ids = {int(number) for number in ID.findall(reply[mark.end() :]) if int(number) <= n}
    if says_correct or ALL_CORRECT in reply:
        return Reading(verdicts(official), verdicts(set()))
    return Reading(verdicts(official), verdicts(ids - {0}) if ids - {0} else None)


def check_format(reply_format: str) -> None:
    """Raise InputError for an unknown format of replies."""
    if reply_format not in REPLY_FORMATS:
        raise unknown_name("unknown reply_format", reply_format, REPLY_FORMATS)


def majority(samples: Sequence[Sequence[bool]]) -> Verdicts:
    """Return the most frequent verdict on each segment.

    Of equally frequent verdicts, it is the first one (cot-cons).
    """
    # max returns the first maximum, which is the earliest sample's verdict.
    return tuple(max(verdicts, key=verdicts.count) for verdicts in zip(*samples, strict=True))


def as_verdicts(value: Any) -> list[bool] | None:
    """Return a list of True and False, or of 1 and 0, as verdicts, or None for anything else.

    Arrays, tensors and Series count as lists.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if is_list_of(value, bool):
        return list(value)
    if not isinstance(value, list | tuple):
        return None
    is_binary = all(
        isinstance(item, bool | int | np.bool_ | np.integer) and item in (0, 1) for item in value
    )
    return [bool(item) for item in value] if is_binary else None


def as_reply(verdicts: Verdicts) -> str:
    """Return the shortest reply that ``read_reply`` reads as these verdicts."""
    wrong = [str(number) for number, factual in enumerate(verdicts, start=1) if not factual]
    return f"{ANSWER}{', '.join(wrong)}" if wrong else ALL_CORRECT


def read_claims(reply: str, n_segments: int) -> list[Json]:
    """Return the claims of a reply with a heading "Segment 1:" and lines "Claim 1. ..." for each segment.

    A claim is {"segment", "text"}, the number of its segment from 1.

    Claims under the heading of an unknown segment are ignored. Without headings, all claims belong
    to the segment if there is only one.
    """
    segment = 1 if n_segments == 1 else 0
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
        labels: one per segment, True = factual.
        verdicts: the official ones: replies that state no verdict count as "all segments are
            correct".
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
        """Return the counts of segments, of the whole response (RESPONSES) and by readable replies (READABLE).

        A response is factual if all its segments are. The counts of READABLE are absent if no reply
        is readable.
        """
        parts = {
            "": (self.verdicts, self.labels),
            RESPONSES: ((all(self.verdicts),), (all(self.labels),)),
        }
        if self.readable is not None:
            parts[READABLE] = (self.readable, self.labels)
        counts: dict[str, int] = {}
        for prefix, columns in parts.items():
            pairs = list(zip(*columns, strict=True))
            counts |= {prefix + name: pairs.count(cell) for name, cell in CELLS.items()}
        return counts

    def as_dict(self) -> Json:
        """Return verdicts and readable (lists, or None), unparsed, unanswered, and the official counts of segments."""
        counts = self.counts()
        return {
            "verdicts": list(self.verdicts),
            "readable": None if self.readable is None else list(self.readable),
            "unparsed": self.unparsed,
            "unanswered": self.unanswered,
        } | {name: counts[name] for name in COUNTS}


def summary(scores: Sequence[ResponseScore], domains: Sequence[str] | None = None) -> Json:
    """Return the result of the metric ``felm_factuality``, which documents it."""
    result = _summary(scores)
    for name in ("unparsed", "unanswered"):
        result[name] = sum(getattr(score, name) for score in scores)
    if domains is not None:
        by_domain = grouped(zip(domains, scores, strict=True))
        result["by_domain"] = {domain: _summary(group) for domain, group in by_domain.items()}
    return result


def _summary(scores: Sequence[ResponseScore]) -> Json:
    rows = [score.counts() for score in scores]
    left_out = sum(score.readable is None for score in scores)
    return _figures(rows, "") | {
        "responses": _figures(rows, RESPONSES),
        "readable": _figures(rows, READABLE) | {"left_out": left_out},
    }


def _figures(rows: Sequence[Mapping[str, int]], prefix: str) -> Json:
    """Return f1, precision, recall, balanced_accuracy (in [0, 1], or None if undefined), and the sums of the counts."""
    counts = {name: sum(row.get(prefix + name, 0) for row in rows) for name in COUNTS}
    numbers = np.array(list(counts.values()), dtype=np.float64)
    with np.errstate(all="ignore"):
        values = {name: float(function(*numbers)) for name, function in FUNCTIONS.items()}
    return {name: value if isfinite(value) else None for name, value in values.items()} | counts


def felm_scores(
    references: Sequence[Sequence[bool]], predictions: Sequence[Any], reply_format: str = "answer"
) -> list[ResponseScore]:
    """Score verdicts on the segments of responses against human labels.

    Args:
        references: for each response its labels, True (or 1) = factual, one per segment and at
            least one.
        predictions: for each response a list of verdicts, True (or 1) = factual, one per segment, or an
            evaluator's reply (a string, see ``read_reply``), or a list of replies, whose
            ``majority`` counts (cot-cons). None is a missing reply.
        reply_format: "answer" or "vicuna". Lists of replies are always read as "answer", as in the
            official script.

    Raises:
        InputError: no responses, lists of different lengths, an item of another type, an unknown
            format.
    """
    check_pairs(references, predictions)
    check_format(reply_format)
    scores = []
    for i, (labels, prediction) in enumerate(zip(references, predictions, strict=True)):
        own = as_verdicts(labels)
        if not own:
            raise InputError(
                f"references[{i}] is {labels!r:.80}; allowed: a list of True (factual) and False, or of 1 and 0, "
                "one per segment"
            )
        try:
            scores.append(response_score(own, prediction, reply_format))
        except InputError as error:
            raise InputError(f"predictions[{i}]: {error}") from None
    return scores


def response_score(
    labels: Sequence[bool],
    prediction: Any,
    reply_format: str = "answer",
    claims: Sequence[Row] | None = None,
) -> ResponseScore:
    """Return the score of one response.

    See ``felm_scores`` for the arguments. ``claims`` are what the replies judge, None for the
    segments.

    Raises InputError if the prediction is of another type, or does not have one verdict per
    segment.
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
        replies, reply_format = list(prediction), "answer"
    replies = [None if reply is UNANSWERED else reply for reply in replies]
    if not all(reply is None or isinstance(reply, str) for reply in replies):
        raise InputError(
            f"{prediction!r:.80}; allowed: a list of True and False, or of 1 and 0, one per segment; "
            "a reply (string), a list of replies, or None"
        )
    readings = [read_reply(reply, len(labels), reply_format, claims) for reply in replies]
    readable = [reading.readable for reading in readings if reading.readable is not None]
    missing = sum(reading.missing for reading in readings)
    return ResponseScore(
        tuple(labels),
        majority([reading.official for reading in readings]),
        majority(readable) if readable else None,
        unparsed=len(readings) - len(readable) - missing,
        unanswered=missing,
    )
