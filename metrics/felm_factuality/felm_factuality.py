"""FELM's scores of factuality evaluators as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.felm import metrics  # From: git+https://github.com/qabench/qabench


class FelmFactuality(MetricModule, evaluate.Metric):
    """How well a factuality evaluator finds the segments of a response that contain errors.

    F1, precision and recall of errors and balanced accuracy are computed over segments and over
    whole responses, overall and by domain, as FELM computes them.

    Args:
        predictions: one of these for each response: a list of verdicts, one per segment (True or 1
            = factual); an evaluator's reply, a string that names the wrong segments after
            "Answer: " or says ALL_CORRECT; a list of replies (the most frequent verdict on a
            segment counts, or the first of equally frequent ones); or None if there is no reply.
        references: the dataset's `labels` column: for each response a list of labels, True =
            factual.
        domains: the dataset's `domain` column, for scores by domain.
        reply_format: "answer", or "vicuna": ids of wrong segments may be anywhere in a reply.
        evaluator: the model that wrote the replies. Only Vicuna's are officially read as "vicuna".
        per_question: also return each response's verdicts and counts.
    Returns:
        f1, precision, recall, balanced_accuracy: floats in [0, 1], or None if undefined. The
            positive class is the error. A reply that is missing or states no verdict counts as "all
            segments are correct", as in the official script.
        tp, tn, fp, fn: counts of segments, as the official script names them: "positive" is judged
            factual, so tn are the errors that were found, and fn the factual segments that were
            judged wrong.
        responses: these eight values for whole responses. A response is factual if all its segments
            are.
        readable: these eight values for the segments of responses with a readable reply, and
            left_out, the number of other responses. They are not official.
        unparsed, unanswered: the number of replies that state no verdict, and of missing replies.
        by_domain: only with `domains`: for each domain, all of the above except unparsed and
            unanswered.
        per_question: with per_question=True, a list of {"verdicts", "readable", "unparsed",
            "unanswered", "tp", "tn", "fp", "fn"} in the order of the input. "readable" is None if
            no reply is readable.
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
        >>> (
        ...     result["f1"],
        ...     result["balanced_accuracy"],
        ...     result["responses"]["f1"],
        ...     result["by_domain"]["math"]["f1"],
        ... )
        (0.5, 0.625, 1.0, 1.0)
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "felm"
    GROUP = "felm"
    KEYS: ClassVar = metrics.KEYS
    COLUMNS: ClassVar = {"domains": "domain"}
    OPTIONS: ClassVar = {"reply_format": "reply_format", "evaluator": "evaluator"}
    BY = "domain"
    REFERENCE = "labels"
    # With the method cot-cons, a model replies several times about the same response.
    SAMPLES = True
    ROW = metrics.row
    FIELDS = metrics.fields
    # Lists of verdicts that a CSV file has turned into text would be read as replies.
    CHECK = metrics.check_replies
    COUNTS = metrics.counts
    TOTALS = metrics.totals
    QUESTION = metrics.verdicts_of_question
    # A prediction is a list of verdicts, a reply, or a list of replies.
    TYPES: ClassVar[Any] = [
        {"predictions": ["bool"], "references": ["bool"]},
        {"predictions": "string", "references": ["bool"]},
        {"predictions": ["string"], "references": ["bool"]},
    ]
    URLS = ("https://arxiv.org/abs/2310.00741", "https://github.com/hkust-nlp/felm")
