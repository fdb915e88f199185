"""Human labels: reads them from a table or the dataset, and corrects scores with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.data.tables import TableRow, read_table
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.judged import (
    DATASET,
    JudgedScore,
    Label,
    Labels,
    corrected,
    dataset_labels,
    part_of,
)

Human = str | Path | Mapping[str, float] | Labels
"""A file with the columns id and label, "dataset", "dataset:N", or labels by id."""
YES = {"1", "true", "yes", "y", "right", "correct"}
NO = {"0", "false", "no", "n", "wrong", "incorrect"}
SEED = 0
ALLOWED = "1 or 0, yes or no, true or false, right or wrong, correct or incorrect, a number, or empty for no label"


def read_labels(source: str | Path | Mapping[str, float]) -> Labels:
    """Return the labels of a table (CSV, TSV, JSONL or Parquet), or of a mapping by id.

    The table has the columns id and label, and may have system, weight and answer: labels of
    another answer are not used. Rows without a label are left out.

    Raises:
        InputError: the file cannot be read or has no labels, a label or a weight is not allowed, or
            an item has two different labels.
    """
    if not isinstance(source, str | Path | Mapping):
        raise InputError(
            f"the labels are of the type {type(source).__name__}; allowed: a file, or a mapping from ids to labels"
        )
    if isinstance(source, Mapping):
        by_item = {}
        for id, value in source.items():
            label = _value(value, f"the label of {id!r}")
            if label is not None:
                by_item[str(id), ""] = Label(label)
        if not by_item:
            raise InputError("there are no labels: the mapping has no value")
        return Labels("the mapping of labels", by_item)
    # A label with the system "" is used for each system that does not have its own label.
    labels: dict[tuple[str, str], Label] = {}
    for row in read_table(source, ("id", "label")):
        number = _value(row.fields["label"], f"{row.where}: the label")
        if number is None:
            continue
        id = str(row.fields["id"]).strip()
        system = str(row.fields.get("system") or "").strip()
        if (id, system) in labels and labels[id, system].value != number:
            hint = ""
            if not system:
                hint = ". Labels of several systems need the column system"
            raise InputError(
                f"{row.where}: the item {id!r} has another label above; give one label per item, such as the "
                f"label of the majority{hint}"
            )
        answer = row.fields.get("answer")
        if not isinstance(answer, str):
            answer = ""
        labels[id, system] = Label(number, _weight(row), answer)
    if not labels:
        raise InputError(f"{source} has no labels; the column label is empty in all rows")
    return Labels(str(source), labels)


def _value(value: object, what: str) -> float | None:
    """Return a label as a number, or None for an empty cell. ``what`` begins the error's text."""
    text = "" if value is None else str(value).strip().lower()
    # pandas reads an empty cell as NaN.
    if text in ("", "nan"):
        return None
    if text in YES | NO:
        return float(text in YES)
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise InputError(f"{what} is {value!r:.60}; allowed: {ALLOWED}")
    return number


def _weight(row: TableRow) -> float:
    """Return the weight of a label: how many items it stands for. 1 for an empty cell."""
    text = row.fields.get("weight")
    if text is None or not str(text).strip():
        return 1.0
    try:
        weight = float(text)
    except (TypeError, ValueError):
        weight = float("nan")
    if not (isfinite(weight) and weight > 0):
        raise InputError(f"{row.where}: the weight is {text!r:.60}; allowed: a number above 0")
    return weight


def with_human(
    evaluations: Sequence[Evaluation], human: Human | None
) -> tuple[list[Evaluation], list[str]]:
    """Return evaluations with corrected scores, and notes about labels that were not used.

    Args:
        evaluations: the evaluations of one or several systems.
        human: a file of labels, "dataset" for the labels of the benchmark's dataset, "dataset:N"
            for a random part of N of them, or labels by id. None changes nothing.

    Raises:
        InputError: the labels cannot be read, or none belongs to a judged item.
    """
    if human is None:
        return list(evaluations), []
    # Find the labels. The dataset's labels depend on what was judged, so they are read below.
    is_from_dataset, count = _of_dataset(human)
    judged = [judged_scores(evaluation) for evaluation in evaluations]
    users_labels = None
    if not is_from_dataset:
        users_labels = human if isinstance(human, Labels) else read_labels(human)
        _check_systems(evaluations, judged, users_labels)

    # Correct the systems one by one.
    results, notes = [], []
    failures: list[InputError] = []
    for evaluation, scores in zip(evaluations, judged, strict=True):
        labels = users_labels
        if labels is None:
            labels = dataset_labels(scores)
            if count is not None:
                labels = part_of(labels, count, SEED)
        try:
            corrections, unused = corrected(scores, labels, evaluation.model)
        except InputError as error:
            # People may have labeled the answers of some systems only.
            failures.append(error)
            notes.append(f"{evaluation.model} is not corrected: {error}")
            results.append(evaluation)
            continue
        results.append(replace(evaluation, corrections=tuple(corrections)))
        # Several systems may give the same note, for example about labels that belong to none of
        # them.
        notes += [note for note in unused if note not in notes]
    if failures and len(failures) == len(evaluations):
        raise failures[0]
    return results, notes


def _check_systems(
    evaluations: Sequence[Evaluation], judged: Sequence[Sequence[JudgedScore]], labels: Labels
) -> None:
    """Raise InputError if a label without a system would be used for different answers."""
    texts: dict[str, tuple[str, str]] = {}
    for evaluation, scores in zip(evaluations, judged, strict=True):
        for score in scores:
            for item in score.items:
                label = labels.of_score(score, item, "")
                # A label that contains its answer's text is only used for this answer.
                if label is None or label.answer:
                    continue
                first, text = texts.setdefault(item.id, (evaluation.model, item.text))
                if text != item.text:
                    raise InputError(
                        f"{labels.source}: the label of {item.id!r} could be of the answer of {first} or of "
                        f"{evaluation.model}; say which in the column system, or score one system"
                    )


def judged_scores(evaluation: Evaluation) -> list[JudgedScore]:
    """Return what a model judged in an evaluation, item by item."""
    return benchmark(evaluation.benchmark).judging().scores(evaluation)


def _of_dataset(human: Any) -> tuple[bool, int | None]:
    """Tell whether labels are the dataset's, and how many of them to use (None for all)."""
    if not isinstance(human, str):
        return False, None
    name, colon, number = human.partition(":")
    # A file with the name "dataset" is a file of labels.
    if name != DATASET or (not colon and Path(human).exists()):
        return False, None
    if not colon:
        return True, None
    if not number.isdecimal() or int(number) < 2:
        raise InputError(f"--human {human}; allowed: dataset, or dataset:N with N of 2 or more")
    return True, int(number)
