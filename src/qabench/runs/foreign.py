"""Logs of any task of other harnesses, as evaluations without official scores.

The scores of a record are the numbers in the log, and the scores of the evaluation follow from
these numbers. Each harness has its own reader: ``any_log`` (Inspect AI), ``lm_eval_samples``,
``lighteval_details`` and ``shared_instances`` (Every Eval Ever).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.data.rows import Row, read_json
from qabench.errors import InputError, some, unreadable
from qabench.evaluation import ANSWERED, EMPTY, FAILED, Evaluation, Message, Record
from qabench.evaluation.passes import with_passes
from qabench.evaluation.score_spec import ScoreSpec
from qabench.runs.clusters import cluster_of
from qabench.runs.file_kinds import sample_rows

if TYPE_CHECKING:
    from qabench.runs.foreign_rows import LoggedObject

# A metadata field is a grouping if it has at most this many values, each of at most this many
# characters.
MAX_GROUPS = 50
# Inspect's letters for correct, partly correct, incorrect and no answer, and texts of other scorers.
VERDICTS = {
    "c": 1.0,
    "yes": 1.0,
    "true": 1.0,
    "p": 0.5,
    "i": 0.0,
    "n": 0.0,
    "no": 0.0,
    "false": 0.0,
}
_DATE = re.compile(r"_\d{4}-\d{2}-\d{2}T[\d:.+-]+$")


def number_of(value: object) -> float | None:
    """Return a value of a log as a number.

    C, P, I and N (correct, partly, incorrect, no answer), yes and no, and true and false are numbers,
    too. Case does not matter.

    Examples:
        >>> number_of("P"), number_of(True), number_of("0.25"), number_of([1, 2])
        (0.5, 1.0, 0.25, None)
    """
    if not isinstance(value, str | int | float):
        return None
    text = str(value).strip().lower()
    if text in VERDICTS:
        return VERDICTS[text]
    try:
        number = float(text)
    except ValueError:
        return None
    # float() accepts "nan" and "inf", which cannot be averaged.
    if not isfinite(number):
        return None
    return number


def numbers_of(values: Mapping[str, object]) -> dict[str, float]:
    """Return the numbers and verdicts by name. A value in a dictionary gets the name NAME.KEY."""
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            numbers |= numbers_of({f"{name}.{key}": item for key, item in value.items()})
        elif (number := number_of(value)) is not None:
            numbers[name] = number
    return numbers


def groups_of(metadata: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return the fields of a question's metadata that can be groupings: short and simple values."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, value in metadata.items():
        # A longer text, such as a passage, is not the name of a group.
        if isinstance(value, str | int) and 0 < len(str(value)) <= MAX_GROUPS:
            groups[name] = (str(value),)
    return groups


def evaluation_of(
    path: Path,
    task: str,
    model: str,
    created: str,
    records: Sequence[Record],
    lower: Collection[str] = (),
    problems: Sequence[str] = (),
    **fields: Any,
) -> Evaluation:
    """Return a log as an evaluation: its scores are means over the records.

    If a record is repeated, the last one is used, and a problem says so.

    Args:
        path: the file.
        task: the name of the task.
        model: the name of the model, or of the file if the log does not name the model.
        created: an ISO date and time.
        records: the records in the order of the log.
        lower: the names of scores for which lower values are better.
        problems: one sentence for each kind of problem.
        **fields: other fields of the evaluation.
    """
    if not records:
        raise InputError(f"{path} has no samples; was the run stopped?")
    samples = [(record.id, record.epoch) for record in records]
    # For a repeated sample, the dict keeps the position of the first record and the value of the
    # last.
    last = dict(zip(samples, records, strict=True))
    repeated = [id for (id, _), count in Counter(samples).items() if count > 1]
    if repeated:
        ids = f"{len(repeated)} ({some(repeated)})"
        problems = [*problems, f"repeated ids, of which the last one counts: {ids}"]
    records = list(last.values())
    evaluation = Evaluation(
        path=str(path),
        task=task,
        benchmark="",
        config=task,
        setting="",
        model=model,
        created=created,
        records=_with_groupings(records),
        problems=problems,
        score_specs=_specs(records, lower),
        **{"status": "success", "expected": len(records), **fields},
    )
    return with_passes(evaluation)


def _specs(records: Sequence[Record], lower: Collection[str]) -> list[ScoreSpec]:
    """Return a spec for each score that the records have."""
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.scores.items():
            values.setdefault(name, []).append(value)
    specs = []
    for name, numbers in values.items():
        # Logs do not declare the range of a score.
        is_share = all(0 <= value <= 1 for value in numbers if not isnan(value))
        spec = ScoreSpec(
            name,
            name,
            "As recorded in the log.",
            name,
            graded=is_share,
            share=is_share,
            higher_is_better=name not in lower,
        )
        specs.append(spec)
    return specs


def _with_groupings(records: Sequence[Record]) -> list[Record]:
    """Keep the groups of fields that have several values, but fewer values than questions."""
    distinct = set()
    ids = set()
    for record in records:
        ids.add(record.id)
        for name, members in record.groups.items():
            distinct.add((name, *members))
    n_values = Counter(name for name, *_ in distinct)
    # A field with a different value for each question, such as a row number, groups nothing.
    most = min(MAX_GROUPS, len(ids) - 1)
    groupings = {name for name, count in n_values.items() if 1 < count <= most}
    with_groupings = []
    for record in records:
        groups = {name: group for name, group in record.groups.items() if name in groupings}
        with_groupings.append(replace(record, groups=groups))
    return with_groupings


def record_of(
    *,
    question: str,
    answer: str | None,
    scores: Mapping[str, float],
    groups: Row,
    **fields: Any,
) -> Record:
    """Return a record, whose status follows from its answer, scores and problem."""
    # Tasks that are scored by log-likelihood record no answer.
    status = ANSWERED if answer or scores else EMPTY
    # A sample that failed after its answer, such as while it was scored, has been answered.
    if fields.get("problem") and not answer:
        status = FAILED
    return Record(
        **{"epoch": 1, **fields},
        question=question,
        messages=[Message("assistant", answer)] if answer else [],
        answer=answer,
        status=status,
        scores=scores,
        groups=groups_of(groups),
        cluster=cluster_of(groups),
    )


def rows_of_samples(
    rows: Sequence[Row],
    sample_of: Callable[[Row], Hashable],
    part_of: Callable[[Row], Hashable],
) -> list[list[Row]]:
    """Group rows by sample.

    A sample has one row per part, such as a filter of lm-evaluation-harness. A second row with the
    same part belongs to a repetition of the sample, which is a group of its own.
    """
    counts: Counter[Hashable] = Counter()
    samples: dict[Hashable, list[Row]] = {}
    for row in rows:
        sample = sample_of(row)
        row_of_sample = (sample, part_of(row))
        samples.setdefault((sample, counts[row_of_sample]), []).append(row)
        counts[row_of_sample] += 1
    return list(samples.values())


def typed_rows(path: Path, kind: type[LoggedObject]) -> list[Row]:
    """Return the rows of a file, which must all be of this type."""
    from qabench.runs.foreign_rows import checked

    try:
        return [checked(row, kind) for row in sample_rows(path)]
    except OSError as error:
        raise unreadable(path, error) from None


def json_beside(path: Path) -> object:
    """Return the content of a JSON file beside a file of samples."""
    try:
        return read_json(path)
    except OSError as error:
        raise unreadable(path, error) from None


def object_or_empty(value: object) -> Row:
    """Return a value if it is a JSON object, else {}."""
    return value if isinstance(value, Mapping) else {}


def first_text(value: object) -> str | None:
    """Return the first text in nested lists, or None."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if not isinstance(value, str):
        return None
    return value


def without_date(stem: str) -> str:
    """Return the name of a file without the date and time at its end."""
    return _DATE.sub("", stem)


def date_in(stem: str) -> str:
    """Return the date and time at the end of a file's name, including the "_" before, or ""."""
    match = _DATE.search(stem)
    if match is None:
        return ""
    return match[0]


def changed_at(path: Path) -> str:
    """Return when a file was last changed, as an ISO date and time."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
