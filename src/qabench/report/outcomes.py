"""The outcome of each answer: right, partly right or wrong if the metric is graded, or why there is no score."""

from __future__ import annotations

from qabench.evaluation import EMPTY, FAILED, MISSING, REFUSED, Metric, Record
from qabench.evaluation.scores import item_score

RIGHT, PARTLY, WRONG, SCORED, UNSCORED = "right", "partly", "wrong", "scored", "unscored"
NAMES = {
    RIGHT: "right",
    PARTLY: "partly right",
    WRONG: "wrong",
    SCORED: "scored",
    EMPTY: "empty",
    REFUSED: "refused",
    FAILED: "failed",
    UNSCORED: "no score",
    MISSING: "missing",
}
_ROUNDING = 1e-9


def outcome(metric: Metric | None, record: Record) -> str:
    """The outcome of an answer, a key of ``NAMES``.

    A refused, failed, missing or empty answer has that outcome instead of "wrong", regardless of its official score.
    """
    if record.status in (EMPTY, REFUSED, FAILED, MISSING):
        return record.status
    score = item_score(metric, record) if metric else None
    if metric is None or score is None:
        return UNSCORED
    if not metric.graded:
        return SCORED
    return RIGHT if score > 1 - _ROUNDING else PARTLY if score > _ROUNDING else WRONG
