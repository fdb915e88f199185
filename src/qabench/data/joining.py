"""Join predictions to a benchmark's questions by id, and tell systems and samples apart.

Real files lack ids, repeat them, and contain ids of other versions: such predictions are counted
and listed, and do not affect the others.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from qabench.data.predictions import Prediction, Predictions
from qabench.errors import InputError, some

# The fields that distinguish lines with the same id.
SYSTEM, SAMPLE = "system", "sample"
UNKNOWN = "predictions for unknown questions"
WITHOUT_PREDICTION = "questions without a prediction"
# If a prediction cannot be used, the problem in its record begins with this word.
UNUSABLE = "unusable"
# The start of the sentence that counts all predictions that cannot be used.
UNUSABLE_PREDICTIONS = f"{UNUSABLE} predictions"
# The problem in the record of a question without a prediction.
NO_PREDICTION = "the file has no prediction"


@dataclass(frozen=True, slots=True)
class Joined:
    """Predictions aligned with questions, and all problems.

    Attributes:
        ids: the question ids that are scored, in order.
        rows: the prediction for each of these ids, or None.
        missing: ids of questions without a prediction.
        unknown: predictions whose id belongs to no question.
        problems: one sentence for each kind of problem.
    """

    ids: Sequence[str]
    rows: Sequence[Prediction | None]
    missing: Sequence[str]
    unknown: Sequence[Prediction]
    problems: Sequence[str]


def join(question_ids: Sequence[str], predictions: Predictions) -> Joined:
    """Join predictions to their questions, in the order of the questions.

    Raises:
        InputError: no prediction belongs to a question.
    """
    expected_ids = set(question_ids)
    # A file may repeat an id, for example after a second run. The last prediction counts.
    last = {row.id: row for row in predictions.rows}
    unknown: list[Prediction] = []
    replaced: list[Prediction] = []
    for row in predictions.rows:
        if row.id not in expected_ids:
            unknown.append(row)
        elif last[row.id] is not row:
            replaced.append(row)
    if len(unknown) == len(predictions.rows):
        raise InputError(
            f"none of the {len(unknown)} predictions of {predictions.path} belongs to a question of this config "
            f"(the first is {unknown[0]}); is it for another config or benchmark?"
        )

    rows = [last.get(id) for id in question_ids]
    missing = [id for id in question_ids if id not in last]
    problems = _counted(
        {
            WITHOUT_PREDICTION: missing,
            UNKNOWN: unknown,
            "predictions replaced by a later line": replaced,
            "unreadable lines": predictions.bad_lines,
        }
    )
    return Joined(question_ids, rows, missing, unknown, problems)


def _counted(items_by_kind: Mapping[str, Sequence[object]]) -> list[str]:
    sentences = []
    for kind, items in items_by_kind.items():
        if items:
            sentences.append(f"{kind}: {len(items)} ({some(items)})")
    return sentences


def with_other_parts(joined: Joined, ids: Container[str], parts: str) -> Joined:
    """Count unknown predictions for other parts of the data, such as domains, separately.

    Args:
        joined: the predictions, joined to the questions of one part.
        ids: the ids of the questions of all parts.
        parts: what the parts are, in the plural.
    """
    elsewhere: list[Prediction] = []
    unknown: list[Prediction] = []
    for row in joined.unknown:
        if row.id in ids:
            elsewhere.append(row)
        else:
            unknown.append(row)
    if not elsewhere:
        return joined
    problems = [problem for problem in joined.problems if not problem.startswith(UNKNOWN)]
    problems += _counted(
        {f"predictions for questions of other {parts}": elsewhere, UNKNOWN: unknown}
    )
    return replace(joined, unknown=unknown, problems=problems)


def by_system(
    predictions: Predictions, *, all_are_samples: bool = False
) -> dict[str, list[Predictions]]:
    """Return the predictions of each system in a file, divided into samples with one line per id.

    Lines with the same id are by several systems if their field "system" differs, and are several
    samples if their "sample" does. Samples are numbered per id, in the order of the lines. If no id
    has several systems, the whole file is by one system, which is named "". Lines that repeat id,
    system and sample are in the same sample, or with ``all_are_samples`` in different ones.
    Unreadable lines belong to the first sample of every system.
    """
    # A file has several systems only if some id has several values of the field "system".
    systems_of_id: dict[str, set[str]] = {}
    for row in predictions.rows:
        systems_of_id.setdefault(row.id, set()).add(_text_in(row, SYSTEM))
    has_several = any(len(systems) > 1 for systems in systems_of_id.values())
    rows_by_system: dict[str, list[list[Prediction]]] = {}
    numbers: dict[tuple[str, str], dict[str, int]] = {}
    for row in predictions.rows:
        system = _text_in(row, SYSTEM) if has_several else ""
        number_of_sample = numbers.setdefault((system, row.id), {})
        sample = f"line {row.line}" if all_are_samples else _text_in(row, SAMPLE)
        number = number_of_sample.setdefault(sample, len(number_of_sample))
        samples = rows_by_system.setdefault(system, [])
        if number == len(samples):
            samples.append([])
        samples[number].append(row)
    systems: dict[str, list[Predictions]] = {}
    for system, samples in rows_by_system.items():
        path = predictions.path
        # Unreadable lines have no id, so it is not known which sample they belong to.
        first = Predictions(path, samples[0], predictions.bad_lines)
        systems[system] = [first, *(Predictions(path, rows) for rows in samples[1:])]
    return systems


def mixed_systems(predictions: Predictions) -> list[str]:
    """Return the systems that a file names on different questions, so that it counts as one system.

    Returns:
        The names, or [] if the file names only one system, or if ``by_system`` tells them apart.
    """
    systems_of_id: dict[str, set[str]] = {}
    for row in predictions.rows:
        systems_of_id.setdefault(row.id, set()).add(_text_in(row, SYSTEM))
    names: dict[str, None] = {}
    for systems in systems_of_id.values():
        if len(systems) > 1:
            return []
        names |= dict.fromkeys(systems)
    return list(names) if len(names) > 1 else []


def _text_in(row: Prediction, name: str) -> str:
    value = row.fields.get(name)
    return "" if value is None else str(value)
