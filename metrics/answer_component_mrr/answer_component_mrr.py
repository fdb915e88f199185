"""Answer Component MRR@k of fastbook-benchmark as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.fastbook import metrics  # From: git+https://github.com/qabench/qabench


class AnswerComponentMrr(MetricModule, evaluate.Metric):
    """How early a system retrieves everything that an answer needs (Answer Component MRR@k).

    The score of a question is 1 / the rank at which all components of its answer have been
    retrieved, or 0 if the first k passages do not retrieve all of them. A passage retrieves a
    component if it contains one of the component's contexts. The result is the mean over
    questions, a fraction, equal to the official score of fastbook-benchmark to the last digit.

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
        mrr@10 (and so on for each k): float in [0, 1].
        skipped: the number of questions whose components are all left out by the options. These
            questions are not in the means.
        per_question: with per_question=True, a list of {"mrr@10": ...} in the order of the input.
            The value is None for a skipped question.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, an item of another
            shape, k not a positive integer.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("answer_component_mrr")
        >>> result = metric.compute(
        ...     predictions=[["A0 is one square meter.", "The ratio is 1.414.", "A4 weighs 5 g."]],
        ...     references=[[{"context": ["ratio is 1.414"]}, {"context": ["one square", "A0 is 1 m2"]}]],
        ...     k=[1, 10],
        ... )
        >>> result["mrr@1"], result["mrr@10"]
        (0.0, 0.5)
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "fastbook"
    GROUP = "retrieval"
    OPTIONS: ClassVar = metrics.OPTIONS
    # Recall is not computed: for a question without components it is undefined, which is an error.
    SCORER_OPTIONS: ClassVar = {"measures": ("mrr",)}
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
