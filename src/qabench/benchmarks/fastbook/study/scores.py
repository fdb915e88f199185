"""The scores of single questions, for files of predictions and for runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabench.benchmarks.fastbook.answer_components import AnswerComponentScores
from qabench.text.rouge import rouge

Columns = dict[str, float]


def retrieval_columns(found: AnswerComponentScores) -> list[Columns]:
    """Each question's scores at every cutoff: {"mrr@10": ..., "recall@10": ...}."""
    columns: list[Columns] = [{} for _ in found.ranks]
    for k in found.cutoffs:
        of_k = zip(columns, found.mrr_per_question(k), found.recall_per_question(k), strict=True)
        for column, mrr, recall in of_k:
            column |= {f"mrr@{k}": mrr or 0.0, f"recall@{k}": recall or 0.0}
    return columns


def rouge_columns(references: Sequence[str], answers: Sequence[str | None]) -> tuple[list[Columns], str]:
    """Each answer's ROUGE F-measures, and the backend. A missing answer scores 0."""
    found = rouge(references, [answer or "" for answer in answers])
    columns = [
        {f"{kind}.fscore": float(measure.fscore) for kind, measure in of_question.items()}
        for of_question in found.per_question
    ]
    return columns, found.backend


def detail(
    row: Mapping[str, Any], ranks: Sequence[int | None], passages: Sequence[Mapping[str, Any]], k: int
) -> dict[str, Any]:
    """The retrieval of one question for the report: its passages, and the rank of each answer component."""
    components = [
        {"text": "; ".join(part["answer_component"]), "contexts": list(part["context"]), "rank": rank}
        for part, rank in zip(row["answer_context"], ranks, strict=True)
    ]
    return {"passages": list(passages[:k]), "components": components, "k": k}
