"""Answer Component Recall@k of fastbook-benchmark as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.benchmarks.fastbook.answer_components import answer_component_scores


class AnswerComponentRecall(MetricModule, evaluate.Metric):
    """Answer Component Recall@k: the mean over questions of the share of the answer's components
    that are retrieved in the top k. A component is retrieved by a passage that contains one of its
    contexts. A fraction. Equal to the official score of fastbook-benchmark to the last digit.

    Args:
        predictions: for each question the list of its passages (strings), best first, or None if
            nothing was retrieved.
        references: the dataset's `answer_context` column: for each question the list of its
            components, dicts with `context` (list of strings), `explicit_context` and
            `extraneous_answer` (booleans), or the same as JSON.
        k: the cutoff, or a list of cutoffs; 10 by default.
        skip_empty_contexts: unofficial: leave out components without context, which no system can
            retrieve.
        skip_extraneous: unofficial: leave out components that go beyond the question.
        explicit_only: unofficial: leave out components that their contexts only imply.
        per_question: also return each question's score.
    Returns:
        recall@10 (and so on for each k): float in [0, 1].
        skipped: the number of questions without any component left by the options. They are not in
            the means.
        per_question: with per_question=True, a list of {"recall@10": ...} in the order of the
            input. None: skipped.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, an item of another
            shape, k not a positive integer, or a question without components, whose recall is
            undefined.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("answer_component_recall")
        >>> result = metric.compute(
        ...     predictions=[["A0 is one square meter.", "The ratio is 1.414.", "A4 weighs 5 g."]],
        ...     references=[[{"context": ["ratio is 1.414"]}, {"context": ["one square", "1 m2"]}, {"context": []}]],
        ...     k=[1, 10],
        ... )
        >>> result["recall@1"], result["recall@10"]
        (0.3333333333333333, 0.6666666666666666)
    """

    BENCHMARK = "fastbook"
    REFERENCE = "answer_context"
    TYPES: ClassVar[Any] = {
        "predictions": ["string"],
        "references": [{"context": ["string"], "explicit_context": "bool", "extraneous_answer": "bool"}],
    }
    URLS = ("https://github.com/vishalbakshi/fastbook-benchmark",)

    def score(
        self,
        predictions: list[Any],
        references: list[Any],
        k: int | list[int] = 10,
        skip_empty_contexts: bool = False,
        skip_extraneous: bool = False,
        explicit_only: bool = False,
        per_question: bool = False,
    ) -> dict[str, Any]:
        score = answer_component_scores(
            references,
            predictions,
            k,
            skip_empty_contexts=skip_empty_contexts,
            skip_extraneous=skip_extraneous,
            explicit_only=explicit_only,
        )
        return score.as_dict("recall", per_question) | self.provenance(references, **score.signature())
