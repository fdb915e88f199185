"""FELM's scores: how well a factuality evaluator finds the segments of a response that contain errors.

Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741); ``eval/eval.py`` of
hkust-nlp/felm. The positive class of precision, recall and F1 is the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from math import isfinite
from typing import Any

from qabench.answers import UNANSWERED, check_pairs
from qabench.benchmarks.felm.counts import COUNTS, FUNCTIONS
from qabench.benchmarks.felm.replies import REPLY_FORMATS, Reading, Verdicts, majority, read_reply
from qabench.errors import InputError


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of segments (or of whole responses) by verdict and label; see ``qabench.benchmarks.felm.counts``."""

    tp: int = 0
    tn: int = 0
    fp: int = 0
    fn: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[bool], labels: Iterable[bool]) -> Confusion:
        """Return the counts of aligned verdicts and labels, True = factual."""
        pairs = list(zip(verdicts, labels, strict=True))
        return cls(*(pairs.count(cell) for cell in ((True, True), (False, False), (True, False), (False, True))))

    @classmethod
    def total(cls, parts: Iterable[Confusion]) -> Confusion:
        """Return the sum of counts."""
        rows = list(parts)
        return cls(*(sum(getattr(row, name) for row in rows) for name in COUNTS))

    @property
    def n(self) -> int:
        """Return the number of segments (or responses) counted."""
        return sum(astuple(self))

    def scores(self) -> dict[str, float | None]:
        """f1, precision, recall, balanced_accuracy: fractions in [0, 1], or None if undefined."""
        import numpy as np

        counts = np.array(astuple(self), dtype=np.float64)
        with np.errstate(all="ignore"):
            values = {name: float(function(*counts)) for name, function in FUNCTIONS.items()}
        return {name: value if isfinite(value) else None for name, value in values.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return the scores and the four counts."""
        return self.scores() | asdict(self)


@dataclass(frozen=True, slots=True)
class ResponseScore:
    """The verdicts on one response next to its labels.

    Attributes:
        labels: one per segment, True = factual.
        verdicts: the official ones: replies that state no verdict count as "all segments are correct".
        readable: the verdicts of the readable replies only; None if no reply is readable.
        unparsed: the number of replies that state no verdict.
        unanswered: the number of missing replies.
    """

    labels: Verdicts
    verdicts: Verdicts
    readable: Verdicts | None
    unparsed: int = 0
    unanswered: int = 0

    @property
    def segments(self) -> Confusion:
        """Return the official counts of segments."""
        return Confusion.of(self.verdicts, self.labels)

    @property
    def response(self) -> Confusion:
        """Return the official count of the whole response, which is factual if all its segments are."""
        return Confusion.of([all(self.verdicts)], [all(self.labels)])

    @property
    def readable_segments(self) -> Confusion | None:
        """Return the counts of segments by the readable replies; None if there are none."""
        return None if self.readable is None else Confusion.of(self.readable, self.labels)

    def as_dict(self) -> dict[str, Any]:
        """verdicts and readable (lists, or None), unparsed, unanswered, and the official counts of segments."""
        return {
            "verdicts": list(self.verdicts),
            "readable": None if self.readable is None else list(self.readable),
            "unparsed": self.unparsed,
            "unanswered": self.unanswered,
        } | asdict(self.segments)


@dataclass(frozen=True, slots=True)
class FelmScore:
    """The scores of all responses, in the order of the input.

    Attributes:
        per_question: one per response.
        domains: one per response; None if they were not given.
    """

    per_question: tuple[ResponseScore, ...]
    domains: tuple[str, ...] | None

    def as_dict(self) -> dict[str, Any]:
        """Return the official scores and counts of segments.

        ``responses``: the same for whole responses. ``readable``: the same for the segments of responses with a
        readable reply, and ``left_out``, the number of other responses. ``unparsed`` and ``unanswered``: the number of
        replies without a verdict, and of missing replies. ``by_domain``: all except these two by domain.
        """
        result = _summary(self.per_question)
        for name in ("unparsed", "unanswered"):
            result[name] = sum(getattr(score, name) for score in self.per_question)
        if self.domains is not None:
            by_domain: dict[str, list[ResponseScore]] = {}
            for domain, score in zip(self.domains, self.per_question, strict=True):
                by_domain.setdefault(domain, []).append(score)
            result["by_domain"] = {domain: _summary(scores) for domain, scores in by_domain.items()}
        return result


def felm_scores(
    references: Sequence[Sequence[bool]],
    predictions: Sequence[Any],
    *,
    domains: Sequence[str] | None = None,
    reply_format: str = "answer",
) -> FelmScore:
    """Score verdicts on the segments of responses against human labels.

    Args:
        references: for each response its labels, True = factual, one per segment and at least one.
        predictions: for each response a list of verdicts, True = factual, one per segment; or an evaluator's reply (a
            string, see ``read_reply``); or a list of replies, whose ``majority`` counts (cot-cons). None is a missing
            reply.
        domains: the domain of each response, for scores by domain.
        reply_format: "answer" or "vicuna". Lists of replies are always read as "answer", as in the official script.

    Raises:
        InputError: no responses, lists of different lengths, an item of another type, an unknown option.
    """
    check_pairs(references, predictions)
    if reply_format not in REPLY_FORMATS:
        raise InputError(f"unknown reply_format {reply_format!r}; allowed: {', '.join(REPLY_FORMATS)}")
    every = [_labels(labels, i) for i, labels in enumerate(references)]
    scores = []
    for i, (labels, prediction) in enumerate(zip(every, predictions, strict=True)):
        try:
            scores.append(response_score(labels, prediction, reply_format))
        except InputError as error:
            raise InputError(f"predictions[{i}]: {error}") from None
    return FelmScore(tuple(scores), _domains(domains, len(scores)))


def response_score(labels: Sequence[bool], prediction: Any, reply_format: str = "answer") -> ResponseScore:
    """Return the score of one response; see ``felm_scores`` for the arguments.

    Raises:
        InputError: the prediction is of another type, or does not have one verdict per segment.
    """
    n = len(labels)
    if _all_of(prediction, bool):
        if len(prediction) != n:
            raise InputError(f"{len(prediction)} verdicts for {n} segments; give one verdict per segment")
        return ResponseScore(tuple(labels), tuple(prediction), tuple(prediction))
    replies = [prediction]
    if isinstance(prediction, list | tuple):
        replies, reply_format = list(prediction), "answer"
    replies = [None if reply is UNANSWERED else reply for reply in replies]
    if not all(reply is None or isinstance(reply, str) for reply in replies):
        raise InputError(
            f"{prediction!r:.80}; allowed: a list of True and False, one per segment; a reply (string), a list of "
            "replies, or None"
        )
    return of_readings(labels, [read_reply(reply, n, reply_format) for reply in replies])


def of_readings(labels: Sequence[bool], readings: Sequence[Reading]) -> ResponseScore:
    """Return the score of one response from its replies, at least one; of several, the majority counts."""
    readable = [reading.readable for reading in readings if reading.readable is not None]
    missing = sum(reading.missing for reading in readings)
    return ResponseScore(
        tuple(labels),
        majority([reading.official for reading in readings]),
        majority(readable) if readable else None,
        unparsed=len(readings) - len(readable) - missing,
        unanswered=missing,
    )


def _summary(scores: Sequence[ResponseScore]) -> dict[str, Any]:
    readable = [counts for score in scores if (counts := score.readable_segments) is not None]
    return Confusion.total(score.segments for score in scores).as_dict() | {
        "responses": Confusion.total(score.response for score in scores).as_dict(),
        "readable": Confusion.total(readable).as_dict() | {"left_out": len(scores) - len(readable)},
    }


def _labels(labels: Any, i: int) -> Sequence[bool]:
    if not _all_of(labels, bool) or not labels:
        raise InputError(
            f"references[{i}] is {labels!r:.80}; allowed: a list of True (factual) and False, one per segment"
        )
    return tuple(labels)


def _domains(domains: Any, n_responses: int) -> tuple[str, ...] | None:
    if domains is None:
        return None
    names = () if isinstance(domains, str) or not isinstance(domains, Iterable) else tuple(domains)
    if len(names) != n_responses or not _all_of(names, str):
        raise InputError(f"domains is {domains!r:.80}; allowed: a list of {n_responses} strings, one per response")
    return names


def _all_of(value: Any, kind: type) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, kind) for item in value)
