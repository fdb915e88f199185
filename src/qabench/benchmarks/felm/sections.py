"""FELM's additional section of a report: the recall of errors by type."""

from __future__ import annotations

from collections.abc import Mapping

from qabench.evaluation import Evaluation
from qabench.evaluation.section import ExtraSection, SectionRow
from qabench.stats import bootstrap_mean

NOT_GIVEN = "type not given"
NOTE = (
    "The share of the wrong segments that were judged wrong. A segment for which no reply has a verdict counts as "
    "not found."
)


def sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    """The recall of errors by type, the most frequent type first.

    Args:
        evaluations: label -> evaluation. Records without segments in their ``detail`` are ignored.
    """
    rows = [row for label, evaluation in evaluations.items() for row in _rows(label, evaluation)]
    return [ExtraSection("Type of error", "errors", rows, note=NOTE, replaces="error type")] if rows else []


def _rows(label: str, evaluation: Evaluation) -> list[SectionRow]:
    found: dict[str, list[tuple[str, float]]] = {}
    for record in evaluation.records:
        for segment in record.detail.get("segments", ()):
            if not segment["label"]:
                kind = (segment["type"] or NOT_GIVEN).replace("_", " ")
                found.setdefault(kind, []).append((record.id, float(segment["verdict"] is False)))
    return [
        SectionRow(
            label,
            "Recall of errors",
            kind,
            bootstrap_mean([value for _, value in of], clusters=[id for id, _ in of]),
            len(of),
        )
        for kind, of in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
