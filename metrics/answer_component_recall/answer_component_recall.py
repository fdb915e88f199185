"""Answer Component Recall@k of fastbook-benchmark as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.fastbook import metrics  # From: git+https://github.com/qabench/qabench


class AnswerComponentRecall(MetricModule, evaluate.Metric):
    """The share of an answer's components that a system retrieves (Answer Component Recall@k).

    The score of a question is the share of its answer's components that are retrieved in the
    top k. A passage retrieves a component if it contains one of the component's contexts. The
    result is the mean over questions, a fraction, equal to the official score of
    fastbook-benchmark to the last digit.

    Args:
        predictions: for each question the list of its passages (strings), best first, or None if
            nothing was retrieved.
        references: the dataset's `answer_context` column: for each question the list of its
            components, dicts with `context` (list of strings), `explicit_context` and
            `extraneous_answer` (booleans), or that list as JSON text.
        k: the cutoff, or a list of cutoffs; 10 by default.
        skip_empty_contexts: (unofficial) leave out components without context, which no system can
            retrieve.
        skip_extraneous: (unofficial) leave out components that go beyond the question.
        explicit_only: (unofficial) leave out components that their contexts only imply.
        per_question: also return each question's score.
    Returns:
        recall@10 (and so on for each k): float in [0, 1].
        skipped: the number of questions whose components are all left out by the options. These
            questions are not in the means.
        per_question: with per_question=True, a list of {"recall@10": ...} in the order of the
            input. The value is None for a skipped question.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, an item of another
            shape, k not a positive integer, or a question without components, whose recall is
            undefined.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("answer_component_recall")
        >>> result = metric.compute(
        ...     predictions=[["A0 is one square meter.", "The ratio is 1.414.", "A4 weighs 5 g."]],
        ...     references=[
        ...         [{"context": ["ratio is 1.414"]}, {"context": ["one square", "1 m2"]}, {"context": []}]
        ...     ],
        ...     k=[1, 10],
        ... )
        >>> result["recall@1"], result["recall@10"]
        (0.3333333333333333, 0.6666666666666666)
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "fastbook"
    GROUP = "retrieval"
    OPTIONS: ClassVar = metrics.OPTIONS
    # The other measure, MRR, is the metric answer_component_mrr.
    SCORER_OPTIONS: ClassVar = {"measures": ("recall",)}
    REFERENCE = "answer_context"
    PREDICTION = "passages"
    COUNTS = metrics.counts
    TYPES: ClassVar[Any] = {
        "predictions": ["string"],
        "references": [
            {"context": ["string"], "explicit_context": "bool", "extraneous_answer": "bool"}
        ],
    }
    URLS = ("https://github.com/vishalbakshi/fastbook-benchmark",)
