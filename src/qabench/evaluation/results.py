"""An evaluation as JSON data, as written by `score --json`, `run --json`, `results` and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from qabench.data.predictions import NO_PREDICTION, WITHOUT_PREDICTION
from qabench.evaluation.scores import Score

if TYPE_CHECKING:
    from qabench.evaluation.evaluation import Evaluation
    from qabench.stats import Interval

NAMED = 5  # ids that a problem lists; the others are counted


def as_dict(evaluation: Evaluation, by: Sequence[str] = ()) -> dict[str, Any]:
    """Return an evaluation as JSON data.

    Args:
        evaluation: from a run's log or from a file of predictions.
        by: groupings to add, such as "category".

    Returns:
        benchmark, config, setting, model, created, status, path, expected, available; by metric name: ``scores``
        (value), ``intervals`` (see ``qabench.stats.Interval``), ``n``, ``unit``, ``left_out`` and ``deviations``
        (sentences; [] for an official score); ``counts`` (records by status, missing ones and all records),
        ``problems`` (sentences), ``signatures`` by family; ``replies`` (all, and those from the cache) of a run whose
        replies are cached; ``unscored`` (why there are no scores) only if there is a reason; with ``by``
        {grouping: {group: {"records", "scores", "intervals", "n", "left_out"}}}.
    """
    scores = evaluation.scores()
    names = ("benchmark", "config", "setting", "model", "created", "status", "path", "expected", "available")
    document: dict[str, Any] = {name: getattr(evaluation, name) for name in names}
    document |= _numbers(scores)
    document |= {
        "unit": {name: score.metric.unit for name, score in scores.items()},
        "deviations": {name: evaluation.deviations(score) for name, score in scores.items()},
        "counts": evaluation.counts() | {"records": len(evaluation.records)},
        "problems": problems(evaluation),
        "signatures": dict(evaluation.signatures),
    }
    if replies := evaluation.replies():
        document["replies"] = replies
    if reason := unscored(evaluation, scores):
        document["unscored"] = reason
    if by:
        document["by"] = {
            grouping: {
                group: {"records": len(records)} | _numbers(evaluation.scores_by_group(grouping)[group])
                for group, records in evaluation.by_group(grouping).items()
            }
            for grouping in by
        }
    return document


def problems(evaluation: Evaluation) -> list[str]:
    """Return the problems of an evaluation, one sentence per kind, with the first ids."""
    kinds: dict[str, list[str]] = {}
    missing_named = any(problem.startswith(WITHOUT_PREDICTION) for problem in evaluation.problems)
    for record in evaluation.records:
        if record.problem and not (missing_named and record.problem == NO_PREDICTION):
            kinds.setdefault(f"{record.status}: {record.problem}", []).append(record.id)
    sentences = list(evaluation.problems)
    for kind, ids in kinds.items():
        more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
        sentences.append(f"{len(ids)} x {kind} ({', '.join(ids[:NAMED])}{more})")
    return sentences


def undefined_note(intervals: Mapping[str, Interval]) -> str | None:
    """Return a sentence about the resamples in which scores are undefined, by name; None if there are none."""
    shares = [f"{name} {interval.undefined:.1%}" for name, interval in intervals.items() if interval.undefined]
    return f"undefined in some resamples, which the intervals leave out: {', '.join(shares)}" if shares else None


def cached_note(evaluation: Evaluation) -> str | None:
    """Return how many replies came from the cache, in one sentence; None if none did."""
    replies = evaluation.replies()
    if not replies.get("cached"):
        return None
    return f"{replies['cached']:,} of {replies['all']:,} replies from the cache"


def unscored(evaluation: Evaluation, scores: Mapping[str, Score]) -> str | None:
    """Return why an evaluation has no scores; None if it has scores."""
    if scores:
        return None
    if evaluation.unscored:
        return evaluation.unscored
    if not evaluation.answered:
        return f"none of the {evaluation.expected} questions was answered"
    return "no answer has a score"


def _numbers(scores: Mapping[str, Score]) -> dict[str, Any]:
    return {
        "scores": {name: score.interval.mean for name, score in scores.items()},
        "intervals": {name: asdict(score.interval) for name, score in scores.items()},
        "n": {name: score.n for name, score in scores.items()},
        "left_out": {name: score.left_out for name, score in scores.items()},
    }
