"""Reads logs of any Inspect AI task, with the scores that the task's own scorers wrote."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from qabench.errors import InputError, some
from qabench.evaluation import Evaluation, Record
from qabench.io.redaction import printable
from qabench.runs.aggregates import reported_by_inspect, with_reported
from qabench.runs.clusters import cluster_of
from qabench.runs.epochs import with_reducers
from qabench.runs.file_kinds import starts_as_log
from qabench.runs.foreign import evaluation_of, groups_of, numbers_of
from qabench.runs.log import header_of, read_samples, record_of
from qabench.runs.log_types import Log, Sample


def read_any_log(path: Path) -> list[Evaluation]:
    """Return the log of another package's task as one evaluation in a list, or [] for other files.

    Raises:
        InputError: the log is damaged, or has no samples.
    """
    if path.suffix == ".json" and not starts_as_log(path):
        return []
    log = header_of(path)
    # qabench's own logs name their benchmark, and have another reader.
    if isinstance((log.spec.get("metadata") or {}).get("benchmark"), str):
        return []
    log, samples = read_samples(path, log)
    records = list(map(any_record, samples))
    if not records and log.status == "success":
        raise InputError(_without_samples(path, log))

    # Say which questions are not in the scores.
    present = {record.id for record in records}
    missing = [id for id in log.positions if id not in present]
    problems = []
    if missing:
        problems.append(f"questions without a sample: {len(missing)} ({some(missing)})")
    repeated = [id for id, count in Counter(log.listed_ids).items() if count > 1]
    if repeated:
        # The log stores samples with equal ids under one file name. The ids 1 and "1" are equal,
        # too.
        problems.append(
            f"ids shared by several questions, of which the log has only one sample: {len(repeated)} ({some(repeated)})"
        )

    # The header has the scores over all samples. The scores computed here are compared with them.
    has_epochs = any(record.epoch > 1 for record in records)
    in_header = reported_by_inspect(log.results, has_epochs)
    evaluation = evaluation_of(
        path=path,
        task=log.task,
        model=log.model,
        created=log.created,
        records=records,
        status=log.status,
        expected=len(log.positions) * log.epochs,
        arguments=log.task_args | log.generation,
        problems=problems,
        origin=log.task_id,
    )
    evaluation = with_reducers(evaluation, in_header.reducers)
    return [with_reported(evaluation, in_header.means, in_header.others)]


def _without_samples(path: Path, log: Log) -> str:
    """Say that a log without samples has no intervals, and name the scores in its header."""
    scores = []
    for score in reported_by_inspect(log.results, has_epochs=False).means:
        scores.append(f"{score.score} {score.value:.4f} ({score.metric})")
    return (
        f"{path} has no samples, as after `inspect eval --no-log-samples`; without them there are no intervals and no "
        f"comparisons. The scores in its header: {', '.join(scores) or 'none'}"
    )


def any_record(sample: Sample) -> Record:
    """Return a sample of any task as a record, with the numbers of its scorers."""
    # A scorer may omit the answer that it extracted. The completion then shows whether there is
    # one.
    answer = sample.completion
    for score in sample.scores.values():
        if score.answer:
            answer = score.answer
            break
    record = record_of(sample, answer)
    problems = [record.problem] if record.problem else []
    values = {}
    explanations = {}
    for name, score in sample.scores.items():
        values[name] = score.value
        # Why the scorer gave no value, or an abnormal one, such as "refusal".
        if score.reason:
            problems.append(f"{name}: {score.reason}")
        if score.explanation:
            explanations[name] = score.explanation
    if sample.is_invalidated:
        why = f" ({sample.invalidation_reason})" if sample.invalidation_reason else ""
        problems.append(f"invalidated in the log{why}, and still in the scores")
    return replace(
        record,
        problem="; ".join(map(printable, problems)) or None,
        question=sample.question,
        reference=sample.target,
        scores=numbers_of(values),
        groups=groups_of(sample.metadata),
        cluster=cluster_of(sample.metadata),
        detail=explanations,
    )
