"""Logs of one task: their questions matched by id, and the scores that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qabench.data.predictions import some
from qabench.errors import InputError
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.metric import Metric, Names, select_scores

DOC_HASH = "doc_hash"  # in ``Record.detail``: a digest of the whole question


def matched(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations whose questions have the same ids, by the digests of the questions if the ids are positions.

    Raises:
        InputError: an id has another question or target in another log, or two logs have no
            question in common.
    """
    evaluations = _by_hash(evaluations)
    first, *others = [
        (each, {record.id: record for record in each.records}) for each in evaluations
    ]
    for other, records in others:
        common = [id for id in records if id in first[1]]
        if not common:
            raise InputError(
                f"{first[0].path} ({first[0].config}) and {other.path} ({other.config}) have no question in common: "
                f"their ids are {some(first[1])} and {some(records)}; compare logs of one task"
            )
        for name, what in (("question", "question"), ("reference", "target")):
            differing = [
                id for id in common if getattr(records[id], name) != getattr(first[1][id], name)
            ]
            if differing:
                texts = [getattr(each[differing[0]], name) for each in (first[1], records)]
                raise InputError(
                    f"{first[0].path} and {other.path} have another {what} for {len(differing)} of {len(common)} ids "
                    f"({some(differing)}), such as {texts[0]!r:.80} and {texts[1]!r:.80}; compare logs of one task and "
                    "of one version of its data"
                )
    return [replace(each, config=evaluations[0].config) for each in evaluations]


def _by_hash(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return the evaluations with the questions' digests as ids if ids differ in them, and digests are distinct."""
    hashes = [
        {record.id: record.detail.get(DOC_HASH) for record in each.records} for each in evaluations
    ]
    usable = all(
        None not in each.values() and len(set(each.values())) == len(each) for each in hashes
    )
    first = hashes[0]
    equal = all(each[id] == first[id] for each in hashes for id in each if id in first)
    shared = all(set(each.values()) & set(first.values()) for each in hashes)
    if equal or not usable or not shared:
        return list(evaluations)
    return [
        replace(
            each,
            records=[replace(record, id=str(record.detail[DOC_HASH])) for record in each.records],
        )
        for each in evaluations
    ]


def unmatched(labels: Sequence[str], evaluations: Sequence[Evaluation]) -> list[str]:
    """Return one sentence for each log that lacks questions of the others, with their ids."""
    ids = dict.fromkeys(record.id for each in evaluations for record in each.records)
    notes = []
    for label, evaluation in zip(labels, evaluations, strict=True):
        own = {record.id for record in evaluation.records}
        if lacking := [id for id in ids if id not in own]:
            notes.append(f"{label} lacks {len(lacking)} of {len(ids)} questions: {some(lacking)}")
    return notes


def common_scores(evaluations: Sequence[Evaluation], names: Names) -> list[Metric]:
    """Return the scores that all evaluations have.

    Of these only the named ones, if there are names.

    Raises InputError if there is none.
    """
    metrics = [{metric.name: metric for metric in each.metrics} for each in evaluations]
    common = [metric for key, metric in metrics[0].items() if all(key in each for each in metrics)]
    if not common:
        owned = "; ".join(
            f"{Path(each.path).name}: {', '.join(own)}"
            for each, own in zip(evaluations, metrics, strict=True)
        )
        raise InputError(f"the logs have no common score ({owned})")
    return select_scores(common, names, "one of the logs")
