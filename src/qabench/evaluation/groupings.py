"""Notes on scores by group: which groups overlap, and which questions are in no group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qabench.errors import some
from qabench.evaluation.scored import ScoredRecords


def distinct_grouping_sentences(evaluations: Iterable[ScoredRecords], grouping: str) -> list[str]:
    """Return the distinct sentences of ``grouping_sentences`` for several evaluations."""
    # A dict as an ordered set.
    sentences: dict[str, None] = {}
    for evaluation in evaluations:
        sentences |= dict.fromkeys(grouping_sentences(evaluation, grouping))
    return list(sentences)


def grouping_sentences(evaluation: ScoredRecords, grouping: str) -> list[str]:
    """Say which questions are in several groups or in none. The groups then do not add up."""
    overlapping, without = [], []
    for id, records in evaluation.by_id().items():
        groups = records[0].groups.get(grouping, ())
        if len(groups) > 1:
            overlapping.append(id)
        elif not groups:
            without.append(id)
    return [
        *_sentence(overlapping, "in several groups, so that the groups overlap"),
        *_sentence(without, "in no group"),
    ]


def _sentence(ids: Sequence[str], place: str) -> list[str]:
    """Return a sentence that says where questions are, or [] if there are none."""
    if not ids:
        return []
    subject = "1 question is"
    if len(ids) > 1:
        subject = f"{len(ids):,} questions are"
    return [f"{subject} {place} ({some(ids)})"]
