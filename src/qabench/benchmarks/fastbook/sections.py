"""The additional section of a report: MRR@k and Recall@k over k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qabench.benchmarks.fastbook.answer_components import AnswerComponentScores
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.section import CURVE, ExtraSection, SectionRow
from qabench.stats import bootstrap_mean


def sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    """The curves of all systems, from the ranks of the components in the records' details.

    Args:
        evaluations: label -> evaluation; a curve ends at the smallest cutoff of its records.
    """
    rows: list[SectionRow] = []
    notes = []
    for label, evaluation in evaluations.items():
        records = [record for record in evaluation.records if record.detail.get("components")]
        if not records:
            continue
        depth = min(record.detail["k"] for record in records)
        ranks = tuple(tuple(part["rank"] for part in record.detail["components"]) for record in records)
        scores = AnswerComponentScores(tuple(range(1, depth + 1)), ranks, ())
        rows += _curve(label, records, scores)
        parts = [rank is None or rank > depth for of in ranks for rank in of]
        notes.append(
            f"{label}: {sum(parts):,} of {len(parts):,} answer components are not in the first {depth} passages."
        )
    return [ExtraSection("MRR@k and Recall@k by k", "questions", rows, CURVE, " ".join(notes), "k")] if rows else []


def _curve(label: str, records: Sequence[Record], scores: AnswerComponentScores) -> list[SectionRow]:
    ids = [record.id for record in records]
    rows = []
    for k in scores.cutoffs:
        for name, values in (("MRR@k", scores.mrr_per_question(k)), ("Recall@k", scores.recall_per_question(k))):
            interval = bootstrap_mean([value or 0.0 for value in values], clusters=ids)
            rows.append(SectionRow(label, name, k, interval, len(ids)))
    return rows
