"""An evaluation as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from qabench.data.rows import Json
from qabench.evaluation.deviations import deviations_of
from qabench.evaluation.notes import problem_sentences
from qabench.evaluation.records import Score
from qabench.evaluation.score_spec import present
from qabench.evaluation.scored import ScoredRecords

FIELDS = (
    "benchmark",
    "config",
    "setting",
    "name",
    "model",
    "created",
    "status",
    "path",
    "expected",
    "available",
)


def document_of(evaluation: ScoredRecords, by: Sequence[str] = ()) -> Json:
    """Return the evaluation as JSON data, which has the same keys for every evaluation.

    Args:
        evaluation: the evaluation.
        by: groupings to add, such as "category".

    Returns:
        ``FIELDS``, as in ``ScoredRecords``. By score name: ``scores`` (value), ``intervals`` (see
        ``qabench.stats.Interval``), ``n``, ``unit``, ``left_out`` and ``deviations`` (sentences; []
        for an official score). The value and the interval of an undefined score are None;
        ``undefined`` has the reason, by name. ``counts`` has the number of records by status,
        including missing ones, and of all records. ``problems`` and ``notes`` are lists of
        sentences. ``unscored`` is why there are no scores, or None. ``signatures`` has one
        signature per group of scores. ``replies`` has the numbers of all replies and of those from
        the cache, or is {} if they are unknown. ``corrected`` has a judge's scores corrected by
        human labels, by name. ``by`` is {grouping: {group: {"records", "scores", "intervals", "n",
        "left_out"}}}.
    """
    scores = evaluation.scores()
    undefined = evaluation.undefined()
    specs = present(evaluation.score_specs, list(evaluation.columns().values))
    names = [spec.name for spec in specs if spec.name in scores or spec.name in undefined]
    document: Json = {field: getattr(evaluation, field) for field in FIELDS}
    document |= _numbers(names, scores, len(evaluation.records))
    document["unit"] = {spec.name: spec.unit for spec in specs if spec.name in names}
    document["deviations"] = {name: [] for name in names}
    for name, score in scores.items():
        document["deviations"][name] = deviations_of(evaluation, score)
    groups = {grouping: _numbers_by_group(evaluation, names, grouping) for grouping in by}
    corrected = {}
    for correction in evaluation.corrections:
        corrected[correction.score.name] = correction.as_dict()
    return document | {
        "undefined": undefined,
        "counts": evaluation.counts() | {"records": len(evaluation.records)},
        "replies": evaluation.replies(),
        "problems": problem_sentences(evaluation),
        "notes": list(evaluation.notes),
        "unscored": evaluation.why_unscored(),
        "signatures": dict(evaluation.signatures),
        "corrected": corrected,
        "by": groups,
    }


def _numbers_by_group(evaluation: ScoredRecords, names: Sequence[str], grouping: str) -> Json:
    """Return, for each group, the number of records and the numbers of the named scores."""
    scores = evaluation.scores_by_group(grouping)
    groups = {}
    for group, records in evaluation.by_group(grouping).items():
        numbers = _numbers(names, scores[group], len(records))
        groups[group] = {"records": len(records), **numbers}
    return groups


def _numbers(names: Sequence[str], scores: Mapping[str, Score], records: int) -> Json:
    """Return the numbers of the named scores. All records are left out of an undefined score."""
    document: Json = {"scores": {}, "intervals": {}, "n": {}, "left_out": {}}
    for name in names:
        value, interval, n, left_out = None, None, 0, records
        if score := scores.get(name):
            value, interval = score.value, asdict(score.interval)
            n, left_out = score.n, score.left_out
        document["scores"][name] = value
        document["intervals"][name] = interval
        document["n"][name] = n
        document["left_out"][name] = left_out
    return document
