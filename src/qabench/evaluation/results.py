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
    """An evaluation as JSON data.

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
    found: dict[str, Any] = {name: getattr(evaluation, name) for name in names}
    found |= _numbers(scores)
    found |= {
        "unit": {name: one.metric.unit for name, one in scores.items()},
        "deviations": {name: evaluation.deviations(one) for name, one in scores.items()},
        "counts": evaluation.counts() | {"records": len(evaluation.records)},
        "problems": problems(evaluation),
        "signatures": dict(evaluation.signatures),
    }
    if replies := evaluation.replies():
        found["replies"] = replies
    if why := unscored(evaluation, scores):
        found["unscored"] = why
    if by:
        found["by"] = {
            grouping: {
                group: {"records": len(records)} | _numbers(evaluation.scores_by_group(grouping)[group])
                for group, records in evaluation.by_group(grouping).items()
            }
            for grouping in by
        }
    return found


def problems(evaluation: Evaluation) -> list[str]:
    """The problems of an evaluation, one sentence for each kind, with the first ids and the number of the others."""
    kinds: dict[str, list[str]] = {}
    named = any(said.startswith(WITHOUT_PREDICTION) for said in evaluation.problems)
    for record in evaluation.records:
        if record.problem and not (named and record.problem == NO_PREDICTION):
            kinds.setdefault(f"{record.status}: {record.problem}", []).append(record.id)
    said = list(evaluation.problems)
    for kind, ids in kinds.items():
        more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
        said.append(f"{len(ids)} x {kind} ({', '.join(ids[:NAMED])}{more})")
    return said


def undefined_note(intervals: Mapping[str, Interval]) -> str | None:
    """Return a sentence about the resamples in which scores are undefined, by name; None if there are none."""
    shares = [f"{name} {one.undefined:.1%}" for name, one in intervals.items() if one.undefined]
    return f"undefined in some resamples, which the intervals leave out: {', '.join(shares)}" if shares else None


def cached_note(evaluation: Evaluation) -> str | None:
    """How many replies came from the cache, in one sentence; None if none did."""
    replies = evaluation.replies()
    if not replies.get("cached"):
        return None
    return f"{replies['cached']:,} of {replies['all']:,} replies from the cache"


def unscored(evaluation: Evaluation, scores: Mapping[str, Score]) -> str | None:
    """Why an evaluation has no scores; None if it has scores."""
    if scores:
        return None
    if evaluation.unscored:
        return evaluation.unscored
    if not evaluation.answered:
        return f"none of the {evaluation.expected} questions was answered"
    return "no answer has a score"


def _numbers(scores: Mapping[str, Score]) -> dict[str, Any]:
    return {
        "scores": {name: one.interval.mean for name, one in scores.items()},
        "intervals": {name: asdict(one.interval) for name, one in scores.items()},
        "n": {name: one.n for name, one in scores.items()},
        "left_out": {name: one.left_out for name, one in scores.items()},
    }
