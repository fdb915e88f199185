"""Means over answers as verdicts on the answers, so that human labels can correct them."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.evaluation.judged import JudgedItem, JudgedScore
from qabench.evaluation.records import ANSWERED, CUT_OFF, Record, item_score
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scored import ScoredRecords


def judged_means(evaluation: ScoredRecords, judge_scores: Sequence[str] = ()) -> list[JudgedScore]:
    """Return the scores that are means over answers, each with its verdict on every answer.

    Args:
        evaluation: an evaluation of a benchmark or of any other task.
        judge_scores: the names of scores that are a model's verdicts. If the evaluation has any of
            them, only those are returned. Otherwise, all means of values from 0 to 1 are returned,
            because an exact match is a verdict, too.
    """
    means = []
    for score in evaluation.scores().values():
        if score.spec.function is None and score.spec.reducer is None:
            means.append(score.spec)
    of_judge = [spec for spec in means if spec.name in judge_scores]
    judged = []
    for spec in of_judge or means:
        items = _items(spec, evaluation.records)
        # Numbers such as seconds or points are not verdicts.
        if items and all(0 <= item.verdict <= 1 for item in items):
            judged.append(JudgedScore(spec.name, spec.title, "right", spec.unit, items))
    return judged


def _items(spec: ScoreSpec, records: Sequence[Record]) -> list[JudgedItem]:
    """Return an item for each record with a score, which is the verdict on the answer."""
    has_epochs = any(record.epoch > 1 for record in records)
    items = []
    for record in records:
        verdict = item_score(spec, record)
        if verdict is None:
            continue
        id = record.id
        if has_epochs:
            # The answers of the epochs differ, so each needs its own label.
            id = f"{record.id}/{record.epoch}"
        items.append(
            JudgedItem(
                id=id,
                question_id=record.id,
                verdict=verdict,
                text=record.answer or "",
                question=record.question,
                reference=record.reference,
                groups=record.groups,
                length=len(record.answer or ""),
                answered=record.status in (ANSWERED, CUT_OFF),
                cluster=record.cluster,
            )
        )
    return items
