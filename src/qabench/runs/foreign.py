"""Logs of any task of other harnesses, as evaluations without official scores.

A reader of a format returns a ``Log``: the records of one task, whose scores are the numbers in the
log. The metrics of the evaluation follow from these numbers. The readers are in ``foreign_inspect``
and ``foreign_files``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from qabench.data.predictions import some
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.metric import Metric
from qabench.evaluation.samples import with_passes

MOST_GROUPS = 50  # a field of the metadata with more values is not a grouping
VERDICTS = {
    "c": 1.0,
    "p": 0.5,
    "i": 0.0,
    "n": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}


@dataclass(frozen=True, slots=True)
class Log:
    """The content of a log.

    Attributes:
        path: the file.
        task: the name of the task.
        model: its name, or the name of the file if the log does not have it.
        created: an ISO date and time.
        records: in the order of the log.
        status: see ``Evaluation.status``.
        expected: the number of records of a complete log. None if it is the number of ``records``.
        lower: the names of scores for which lower values are better.
        arguments: of the task and the model.
        problems: one sentence for each kind of problem.
        origin: equal for a run and the runs that resumed it.
    """

    path: str
    task: str
    model: str
    created: str
    records: Sequence[Record]
    status: str = "success"
    expected: int | None = None
    lower: frozenset[str] = frozenset()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problems: Sequence[str] = ()
    origin: str = ""


def number_of(value: Any) -> float | None:
    """Return a value of a log as a number: C, P, I and N (correct, partly, incorrect, no answer), yes and no also.

    Examples:
        >>> number_of("P"), number_of(True), number_of("0.25"), number_of([1, 2])
        (0.5, 1.0, 0.25, None)
    """
    if isinstance(value, str):
        if value.strip().lower() in VERDICTS:
            return VERDICTS[value.strip().lower()]
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float):
        return None
    number = float(value)
    return number if isfinite(number) else None


def numbers_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the values that are numbers or verdicts, by name.

    A value of a dictionary is NAME.KEY.
    """
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            numbers |= numbers_of({f"{name}.{key}": each for key, each in value.items()})
        elif (number := number_of(value)) is not None:
            numbers[name] = number
    return numbers


def groups_of(metadata: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the fields of a question's metadata that can be groupings: short texts, integers, and true or false."""
    return {
        name: (str(value),)
        for name, value in metadata.items()
        if isinstance(value, str | int) and 0 < len(str(value)) <= MOST_GROUPS
    }


def evaluation_of(log: Log) -> Evaluation:
    """Return a log as an evaluation: its metrics are the means of its scores.

    Of repeated records, the last one counts. They are counted among the problems.
    """
    counts = Counter((record.id, record.epoch) for record in log.records)
    repeated = [id for (id, _), count in counts.items() if count > 1]
    problems = list(log.problems)
    if repeated:
        problems.append(
            f"repeated ids, of which the last one counts: {len(repeated)} ({some(repeated)})"
        )
    records = list({(record.id, record.epoch): record for record in log.records}.values())
    if not records:
        raise InputError(f"{log.path} has no samples; was the run stopped?")
    evaluation = Evaluation(
        path=log.path,
        task=log.task,
        benchmark="",
        config=log.task,
        setting="",
        model=log.model,
        created=log.created,
        status=log.status,
        expected=len(records) if log.expected is None else log.expected,
        records=_with_groupings(records),
        arguments=log.arguments,
        problems=problems,
        origin=log.origin,
        metrics=_metrics(records, log.lower),
    )
    return with_passes(evaluation)


def _metrics(records: Sequence[Record], lower: frozenset[str]) -> list[Metric]:
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.scores.items():
            values.setdefault(name, []).append(value)
    return [
        Metric(
            name,
            name,
            "As recorded in the log.",
            group=name,
            graded=all(0 <= value <= 1 for value in numbers),
            higher_is_better=name not in lower,
        )
        for name, numbers in values.items()
    ]


def _with_groupings(records: Sequence[Record]) -> list[Record]:
    """Return the records with the groups of fields that have several values, and fewer than there are questions."""
    values: dict[str, set[str]] = {}
    for record in records:
        for name, groups in record.groups.items():
            values.setdefault(name, set()).update(groups)
    most = min(MOST_GROUPS, len({record.id for record in records}) - 1)
    names = {name for name, groups in values.items() if 1 < len(groups) <= most}
    return [
        replace(
            record, groups={name: groups for name, groups in record.groups.items() if name in names}
        )
        for record in records
    ]
