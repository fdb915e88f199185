"""FELM's scores of factuality evaluators as an ``evaluate`` metric."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.answers import UNANSWERED, is_list_of
from qabench.benchmarks.felm.official import misread
from qabench.benchmarks.felm.scores import felm_scores, summary
from qabench.errors import InputError
from qabench.evaluation.signature import digest

# "true", "[true, false]" and "[True False]", as files of verdicts have them
VERDICTS = re.compile(r"\[?\s*(?:true|false)(?:[\s,]+(?:true|false))*\s*\]?", re.IGNORECASE)


class FelmFactuality(MetricModule, evaluate.Metric):
    """How well a factuality evaluator finds the segments of a response that contain errors: F1,
    precision and recall of errors and balanced accuracy, over segments and over whole responses,
    overall and by domain, as FELM scores them.

    Args:
        predictions: for each response a list of verdicts, True or 1 = factual, one per segment, or an
            evaluator's reply (a string), which names the wrong segments after "Answer: " or says
            ALL_CORRECT, or a list of replies, of which the majority counts for each segment (the
            first of equally frequent verdicts), or None if there is no reply.
        references: the dataset's `labels` column: for each response a list of labels, True =
            factual.
        domains: the dataset's `domain` column, for scores by domain.
        reply_format: "answer", or "vicuna": ids of wrong segments may be anywhere in a reply.
        evaluator: the model that wrote the replies. Only Vicuna's are officially read as "vicuna".
        per_question: also return each response's verdicts and counts.
    Returns:
        f1, precision, recall, balanced_accuracy: floats in [0, 1], or None if undefined. The
        positive class is the error.
            A reply that is missing or states no verdict counts as "all segments are correct", as in
            the official script.
        tp, tn, fp, fn: counts of segments. "Positive" is judged factual here, as in the official
        script: tn are the
            errors that were found, fn the factual segments that were judged wrong.
        responses: the same eight for whole responses. A response is factual if all its segments
            are.
        readable: the same eight for the segments of responses with a readable reply, and left_out,
            the number of other responses. These scores are not official.
        unparsed, unanswered: the number of replies that state no verdict, and of missing ones.
        by_domain: with domains, all of these but unparsed and unanswered by domain.
        per_question: with per_question=True, a list of {"verdicts", "readable", "unparsed",
            "unanswered", "tp", "tn", "fp", "fn"} in the order of the input. Readable is None if no
            reply is readable.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, verdicts and labels
            of different lengths, an item of another type, an unknown option.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("felm_factuality")
        >>> result = metric.compute(
        ...     predictions=[[True, False], "Segment 2 is wrong. Answer: 2", "ALL_CORRECT"],
        ...     references=[[True, False], [True, True, False], [True]],
        ...     domains=["math", "wk", "wk"],
        ... )
        >>> (result["f1"], result["balanced_accuracy"], result["responses"]["f1"], result["by_domain"]["math"]["f1"])
        (0.5, 0.625, 1.0, 1.0)
    """

    BENCHMARK = "felm"
    REFERENCE = "labels"
    TYPES: ClassVar[Any] = [  # verdicts, a reply, or several replies
        {"predictions": ["bool"], "references": ["bool"]},
        {"predictions": "string", "references": ["bool"]},
        {"predictions": ["string"], "references": ["bool"]},
    ]
    URLS = ("https://arxiv.org/abs/2310.00741", "https://github.com/hkust-nlp/felm")

    def score(
        self,
        predictions: list[Any],
        references: list[Any],
        domains: Any = None,
        reply_format: str = "answer",
        evaluator: str | None = None,
        per_question: bool = False,
    ) -> dict[str, Any]:
        _check_replies(predictions)
        scores = felm_scores(references, predictions, reply_format)
        if domains is not None:
            domains = _checked(domains, len(scores))
        result = summary(scores, domains)
        has_single_replies = any(isinstance(prediction, str) for prediction in predictions)
        fields = {
            "domains": None if domains is None else digest(domains),
            "unparsed": "all_correct",
            "replies": reply_format,
            "evaluator": evaluator,
            "system": misread(reply_format, evaluator, sampled=not has_single_replies),
        }
        result |= self.provenance(references, **fields)
        if per_question:
            result["per_question"] = [score.as_dict() for score in scores]
        return result

    def is_unanswered(self, answer: Any) -> bool:
        """Return whether a prediction is missing, or is a list of missing replies."""
        replies = answer if isinstance(answer, list) else [answer]
        return all(reply is None or reply is UNANSWERED for reply in replies)


def _check_replies(predictions: list[Any]) -> None:
    """Raise InputError if all replies are verdicts that a CSV file has turned into text."""
    replies = [part for item in predictions for part in (item if isinstance(item, list) else [item])]
    texts = [reply.strip() for reply in replies if isinstance(reply, str)]
    if texts and len(texts) == sum(map(bool, map(VERDICTS.fullmatch, texts))):
        raise InputError(
            f"predictions are verdicts written as text, such as {texts[0]!r:.60}; pass lists of True and False, one "
            "per segment: json.loads(text) for JSON text, ast.literal_eval(text) for Python's"
        )


def _checked(domains: Any, n: int) -> tuple[str, ...]:
    names = () if isinstance(domains, str) or not isinstance(domains, Iterable) else tuple(domains)
    if len(names) != n or not is_list_of(names, str):
        raise InputError(f"domains is {domains!r:.80}; allowed: a list of {n} strings, one per response")
    return names
