"""FELM's scores of factuality evaluators as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.metric_module import MetricModule, decoded
from qabench.scoring.felm import felm_scores
from qabench.signature import digest

_DESCRIPTION = """
How well an evaluator of factuality finds the segments of a response that contain errors: F1, precision and recall of
errors and balanced accuracy, over segments and over whole responses, overall and by domain, as FELM scores them.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: for each response a list of verdicts, True = factual, one a segment; or the evaluator's reply (text),
        which names the wrong segments after "Answer: " or says ALL_CORRECT; or a list of replies, whose majority counts
        segment by segment, the earliest among equals; or None: there is no reply.
    references: the dataset's `labels` column: for each response a list of labels, True = factual.
    domains: the dataset's `domain` column, for figures by domain.
    on_unparsed: what to make of a reply that nothing can be read from, or that is missing: "correct" (official: every
        segment is taken for true) or "exclude" (left out).
    reply_format: "answer", or "vicuna": ids of wrong segments may stand anywhere in a reply.
    per_question: also give each response's verdicts and counts.
    references_format: "json" or "python" says which form the references have; "auto" takes them for JSON when all are.
Returns:
    f1, precision, recall, balanced_accuracy: floats in [0, 1]; None where undefined. The positive class is the error.
    tp, tn, fp, fn: counts of segments. Here, as in the official script, "positive" is predicted true: tn are the errors
        that were found, fn the true segments that were called errors.
    responses: the same eight for whole responses; a response is true when all its segments are.
    unparsed, unanswered: how many replies nothing can be read from, and how many are missing.
    by_domain: with domains, all of these but the last two by domain.
    signature: everything the scores depend on, in one line.
    deviations: what distinguishes the scores from the official ones, in sentences; empty if they are official.
    per_question: with per_question=True, a list of {"verdicts", "unparsed", "unanswered", "tp", "tn", "fp", "fn"} in
        the order of the input; verdicts are None for a response that is left out.
Raises:
    InputError (a ValueError): nothing to score, lists of unlike length, verdicts and labels of unlike length, an item
    of another type, an unknown option.
Examples:
    >>> import qabench
    >>> metric = qabench.load_metric("felm_factuality")
    >>> result = metric.compute(
    ...     predictions=[[True, False], "Segment 2 is wrong. Answer: 2", "ALL_CORRECT"],
    ...     references=[[True, False], [True, True, False], [True]],
    ...     domains=["math", "wk", "wk"],
    ... )
    >>> result["f1"], result["balanced_accuracy"], result["responses"]["f1"], result["by_domain"]["math"]["f1"]
    (0.5, 0.625, 1.0, 1.0)
"""


class FelmFactuality(MetricModule, evaluate.Metric):
    """See ``DESCRIPTION`` and ``INPUTS``."""

    BENCHMARK = "felm"
    DESCRIPTION = _DESCRIPTION
    INPUTS = _KWARGS_DESCRIPTION
    URLS = ("https://arxiv.org/abs/2310.00741", "https://github.com/hkust-nlp/felm")

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        domains: Any = None,
        on_unparsed: str = "correct",
        reply_format: str = "answer",
        per_question: bool = False,
        references_format: str = "auto",
    ) -> dict[str, Any]:
        given, labels = decoded(predictions, references, references_format)
        score = felm_scores(labels, given, domains=domains, on_unparsed=on_unparsed, reply_format=reply_format)
        result = score.as_dict()
        digested = score.domains and digest(score.domains)
        result |= self.provenance(labels, domains=digested, unparsed=on_unparsed, replies=reply_format)
        if per_question:
            result["per_question"] = [response.as_dict() for response in score.per_question]
        return result
