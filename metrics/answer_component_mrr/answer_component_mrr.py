"""Answer Component MRR@k of fastbook-benchmark as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate

from qabench.metric_columns import JsonColumns, decode_predictions, decode_references
from qabench.scoring.answer_components import answer_component_scores
from qabench.signature import digest, signature

_DESCRIPTION = """
Answer Component MRR@k: the mean over questions of 1 / rank, where rank is the first by which every component of the
question's answer was retrieved; 0 where one is not among the first k passages. A component is retrieved by a passage
that contains one of its contexts. A fraction; equal to the official figure of fastbook-benchmark to the last digit.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: for each question the list of its passages (texts), the best first; None where nothing was retrieved.
    references: the dataset's `answer_context` column: for each question the list of its components, dicts with
        `context` (list of texts), `explicit_context` and `extraneous_answer` (truth values); or JSON text of such.
    k: the cutoff, 10 by default, or a list of several.
    skip_empty_contexts: unofficial: leave out components without context, which no system can retrieve.
    skip_extraneous: unofficial: leave out components that go beyond the question.
    explicit_only: unofficial: leave out components that their contexts do not say outright.
    per_question: also give each question's score.
    references_format: "json" or "python" says which form the references have; "auto" takes them for JSON when all are.
Returns:
    mrr@10 (and so on for each k): float in [0, 1].
    signature: everything the score depends on, in one line.
    unofficial: only with options: their names; skipped: how many questions they leave without a component, which
        count in no mean.
    per_question: with per_question=True, a list of {"mrr@10": ...} in the order of the input; None: skipped.
Raises:
    InputError (a ValueError): nothing to score, lists of unlike length, an item of another shape, k not a positive
    integer.
Examples:
    >>> import qabench
    >>> metric = qabench.load_metric("answer_component_mrr")
    >>> result = metric.compute(
    ...     predictions=[["A0 is one square metre.", "The ratio is 1.414.", "A4 weighs 5 g."]],
    ...     references=[[{"context": ["ratio is 1.414"]}, {"context": ["one square", "A0 is 1 m2"]}]],
    ...     k=[1, 10],
    ... )
    >>> result["mrr@1"], result["mrr@10"]
    (0.0, 0.5)
"""
_CITATION = """
@misc{bakshi-2024-fastbook-benchmark,
  title = {fastbook-benchmark: Information Retrieval {QA} Dataset},
  author = {Bakshi, Vishal},
  year = {2024},
  howpublished = {\\url{https://github.com/vishalbakshi/fastbook-benchmark}},
}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class AnswerComponentMrr(JsonColumns, evaluate.Metric):
    """See the module's description."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": text, "references": text}),
            reference_urls=["https://github.com/vishalbakshi/fastbook-benchmark"],
        )

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        k: int | list[int] = 10,
        skip_empty_contexts: bool = False,
        skip_extraneous: bool = False,
        explicit_only: bool = False,
        per_question: bool = False,
        references_format: str = "auto",
    ) -> dict[str, Any]:
        components = decode_references(references, references_format)
        score = answer_component_scores(
            components,
            decode_predictions(predictions),
            k,
            skip_empty_contexts=skip_empty_contexts,
            skip_extraneous=skip_extraneous,
            explicit_only=explicit_only,
        )
        result: dict[str, Any] = {f"mrr@{cutoff}": score.mrr(cutoff) for cutoff in score.cutoffs}
        result["signature"] = signature("answer_component_mrr", references=digest(components), **score.signature())
        if score.options:
            result |= {"unofficial": ", ".join(score.options), "skipped": score.skipped}
        if per_question:
            columns = {f"mrr@{cutoff}": score.mrr_per_question(cutoff) for cutoff in score.cutoffs}
            result["per_question"] = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
        return result
