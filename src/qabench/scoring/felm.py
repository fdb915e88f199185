"""FELM's scores: how well an evaluator of factuality finds the segments of a response that contain errors.

Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741); ``eval/eval.py`` of
hkust-nlp/felm. The positive class of precision, recall and F1 is the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qabench.answers import UNANSWERED
from qabench.errors import InputError
from qabench.scoring.felm_replies import REPLY_FORMATS, Verdicts, majority, parse_reply
from qabench.scoring.pairs import check_pairs

ON_UNPARSED = ("correct", "exclude")


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of segments (or responses) by prediction and label; "positive" is true here, as in the official script.

    Attributes:
        tp: predicted true, is true. tn: predicted an error, is one. fp: predicted true, is an error. fn: predicted an
            error, is true.
    """

    tp: int = 0
    tn: int = 0
    fp: int = 0
    fn: int = 0

    @classmethod
    def of(cls, predicted: Iterable[bool], labels: Iterable[bool]) -> Confusion:
        """The counts of aligned verdicts and labels."""
        pairs = list(zip(predicted, labels, strict=True))
        cells = ((True, True), (False, False), (True, False), (False, True))
        return cls(*(pairs.count(cell) for cell in cells))

    @classmethod
    def total(cls, parts: Iterable[Confusion]) -> Confusion:
        """The sum of counts."""
        rows = list(parts)
        return cls(*(sum(getattr(row, name) for row in rows) for name in ("tp", "tn", "fp", "fn")))

    @property
    def precision(self) -> float | None:
        """The share of predicted errors that are errors; None where none was predicted."""
        return _ratio(self.tn, self.tn + self.fn)

    @property
    def recall(self) -> float | None:
        """The share of errors that were found; None where there are none."""
        return _ratio(self.tn, self.tn + self.fp)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall; None where one is. 0 where both are 0: upstream divides by 0."""
        precision, recall = self.precision, self.recall
        if precision is None or recall is None:
            return None
        # In this form, as upstream: 2 tn / (2 tn + fn + fp) differs in the last digit.
        return 2 * recall * precision / (recall + precision) if self.tn else 0.0

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of the recalls of true ones and of errors; None where there are none of either."""
        of_true, of_errors = _ratio(self.tp, self.tp + self.fn), self.recall
        return None if of_true is None or of_errors is None else (of_true + of_errors) / 2

    def as_dict(self) -> dict[str, Any]:
        """f1, precision, recall, balanced_accuracy and the four counts."""
        names = ("f1", "precision", "recall", "balanced_accuracy")
        return {name: getattr(self, name) for name in names} | asdict(self)


@dataclass(frozen=True, slots=True)
class ResponseScore:
    """One response.

    Attributes:
        verdicts: what was scored, True = factual, one a segment; None: left out.
        unparsed: how many of its replies nothing could be read from. unanswered: how many are not there.
        segments: counts of its segments, all 0 where it is left out.
        response: the same for the response as a whole, which is true when all its segments are.
    """

    verdicts: Verdicts | None
    unparsed: int
    unanswered: int
    segments: Confusion
    response: Confusion

    def as_dict(self) -> dict[str, Any]:
        """verdicts, unparsed, unanswered, and the counts of the segments."""
        verdicts = None if self.verdicts is None else list(self.verdicts)
        return {"verdicts": verdicts, "unparsed": self.unparsed, "unanswered": self.unanswered} | asdict(self.segments)


@dataclass(frozen=True, slots=True)
class FelmScore:
    """All responses in the order of the input, and their domains where those were given."""

    per_question: tuple[ResponseScore, ...]
    domains: tuple[str, ...] | None

    def as_dict(self) -> dict[str, Any]:
        """The figures of the segments, in ``responses`` those of whole responses, in ``by_domain`` the same by domain;
        how many replies nothing could be read from, and how many are not there.
        """
        result = _figures(self.per_question)
        for name in ("unparsed", "unanswered"):
            result[name] = sum(getattr(score, name) for score in self.per_question)
        if self.domains is not None:
            by_domain: dict[str, list[ResponseScore]] = {}
            for domain, score in zip(self.domains, self.per_question, strict=True):
                by_domain.setdefault(domain, []).append(score)
            result["by_domain"] = {domain: _figures(scores) for domain, scores in by_domain.items()}
        return result


def felm_scores(
    references: Sequence[Sequence[bool]],
    predictions: Sequence[Any],
    *,
    domains: Sequence[str] | None = None,
    on_unparsed: str = "correct",
    reply_format: str = "answer",
) -> FelmScore:
    """Scores verdicts on the segments of responses against the labels of people.

    Args:
        references: for each response its labels, True = factual, one a segment and at least one.
        predictions: for each response its verdicts, likewise; or an evaluator's reply, see ``parse_reply``; or a list
            of replies, whose ``majority`` counts (cot-cons). A reply can be None: there is none.
        domains: for each response its domain, for figures by domain.
        on_unparsed: what to make of a reply that nothing can be read from, or that is None. "correct": every segment
            is taken for true, as upstream; "exclude": it is left out, and so is a response with no other reply.
        reply_format: "answer" or "vicuna".

    Raises:
        InputError: no responses, lists of unlike length, an item of another type, an unknown option.
    """
    check_pairs(references, predictions)
    _check_option("on_unparsed", on_unparsed, ON_UNPARSED)
    _check_option("reply_format", reply_format, REPLY_FORMATS)
    pairs = enumerate(zip(references, predictions, strict=True))
    scores = [
        _response(_labels(labels, i), prediction, i, on_unparsed, reply_format) for i, (labels, prediction) in pairs
    ]
    return FelmScore(tuple(scores), _domains(domains, len(scores)))


def _response(labels: Sequence[bool], prediction: Any, i: int, on_unparsed: str, reply_format: str) -> ResponseScore:
    n = len(labels)
    if _all_of(prediction, bool):
        if len(prediction) != n:
            raise InputError(f"predictions[{i}] has {len(prediction)} verdicts for the {n} segments of references[{i}]")
        return _scored(labels, tuple(prediction))
    replies = _replies(prediction, i)
    parsed = [None if reply is None else parse_reply(reply, n, reply_format) for reply in replies]
    unread, unanswered = parsed.count(None), replies.count(None)
    fallback = [(True,) * n] if on_unparsed == "correct" else []
    # In the order of the replies: among equal verdicts the majority takes the earliest.
    samples = [verdicts for one in parsed for verdicts in ([one] if one is not None else fallback)]
    return _scored(labels, majority(samples) if samples else None, unread - unanswered, unanswered)


def _scored(labels: Sequence[bool], verdicts: Verdicts | None, unparsed: int = 0, unanswered: int = 0) -> ResponseScore:
    if verdicts is None:
        return ResponseScore(None, unparsed, unanswered, Confusion(), Confusion())
    segments, response = Confusion.of(verdicts, labels), Confusion.of([all(verdicts)], [all(labels)])
    return ResponseScore(verdicts, unparsed, unanswered, segments, response)


def _replies(prediction: Any, i: int) -> list[str | None]:
    replies = list(prediction) if isinstance(prediction, list | tuple) else [prediction]
    replies = [None if reply is UNANSWERED else reply for reply in replies]
    if not all(reply is None or isinstance(reply, str) for reply in replies):
        raise InputError(
            f"predictions[{i}] is {prediction!r:.80}; allowed: a list of True and False, one a segment; a "
            "reply (text), a list of replies, or None"
        )
    return replies


def _figures(scores: Sequence[ResponseScore]) -> dict[str, Any]:
    segments, responses = ([getattr(score, level) for score in scores] for level in ("segments", "response"))
    return Confusion.total(segments).as_dict() | {"responses": Confusion.total(responses).as_dict()}


def _labels(labels: Any, i: int) -> Sequence[bool]:
    if not _all_of(labels, bool) or not labels:
        raise InputError(
            f"references[{i}] is {labels!r:.80}; allowed: a list of True (factual) and False, one a segment"
        )
    given: Sequence[bool] = labels
    return given


def _domains(domains: Any, n_responses: int) -> tuple[str, ...] | None:
    if domains is None:
        return None
    given = () if isinstance(domains, str) or not isinstance(domains, Iterable) else tuple(domains)
    if len(given) != n_responses or not _all_of(given, str):
        raise InputError(f"domains is {domains!r:.80}; allowed: a list of {n_responses} texts, one a response")
    return given


def _all_of(value: Any, kind: type) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, kind) for item in value)


def _check_option(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"unknown {name} {value!r}; allowed: {', '.join(allowed)}")


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
