"""Aligns predictions and references of a metric's page: by id if both have ids, else by position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qabench.errors import InputError
from qabench.space.inputs import PREDICTION_FIELDS, Items, some, with_fields


@dataclass(frozen=True, slots=True)
class Given:
    """The input of a metric.

    Attributes:
        columns: aligned lists: "predictions", "references", and further columns of the metric.
        ids: the ids of the questions in order, or None.
        notes: notes for the user on how they were aligned.
    """

    columns: Mapping[str, list[Any]]
    ids: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def put_together(
    predictions: Items, references: Items | None, extra: Mapping[str, Items | None], fields: Mapping[str, str]
) -> Given:
    """The columns of a metric.

    Args:
        predictions: the predictions as read; their objects may contain references, which then count, and further
            columns.
        references: the references as read; None if the predictions contain them.
        extra: further columns given separately, in the order of the references, or None.
        fields: the field of a row for "references" and each further column, such as {"domains": "domain"}.

    Returns:
        Unanswered questions have None as the prediction; of several predictions with the same id, the last counts.

    Raises:
        InputError: there are no references; an item cannot be used and there are no ids to align the others; no id is
            on both sides; an id is repeated in the references; a column has gaps.
    """
    reference_fields = ("reference", fields["references"]) if fields.get("references") else ("reference",)
    predictions = with_fields(predictions, PREDICTION_FIELDS)
    carries = predictions.holds("reference") and any(map(predictions.holds, PREDICTION_FIELDS))
    if references is None or carries:
        return _one_source(predictions, references, reference_fields, extra, fields)
    references = with_fields(references, reference_fields)
    if predictions.have_ids() and references.have_ids():
        return _by_id(predictions, references, extra, fields)
    columns = {"predictions": predictions.values(), "references": references.values()}
    ids = next((tuple(str(i.id) for i in side.items) for side in (references, predictions) if side.have_ids()), None)
    notes = ("One side has no ids: predictions and references are matched by position.",) if ids else ()
    return Given(columns | _extra([references, predictions], extra, fields), ids, notes)


def _one_source(
    rows: Items,
    unused: Items | None,
    reference_fields: tuple[str, ...],
    extra: Mapping[str, Items | None],
    fields: Mapping[str, str],
) -> Given:
    # An object whose answer is the prediction has no reference in that field.
    usable = reference_fields if rows.holds("prediction") else reference_fields[:1]
    carrying = next(filter(rows.holds, usable), None)
    if carrying is None:
        raise InputError("references: empty; paste them, choose a file, or add a reference to each prediction")
    ids = tuple(str(item.id) for item in rows.items) if rows.have_ids() else None
    columns = {"predictions": rows.values(), "references": rows.values(carrying)}
    notes = (f"Each prediction contains its reference; those of {unused.name} are not used.",) if unused else ()
    return Given(columns | _extra([rows], extra, fields), ids, notes)


def _by_id(
    predictions: Items, references: Items, extra: Mapping[str, Items | None], fields: Mapping[str, str]
) -> Given:
    values = references.values()
    lines: dict[str, list[int]] = {}
    for item in references.items:
        lines.setdefault(str(item.id), []).append(item.number)
    if twice := [f"{i} ({references.unit}s {_listed(at)})" for i, at in lines.items() if len(at) > 1]:
        raise InputError(f"{references.name}: repeated ids: {some(twice)}")
    last = {str(item.id): item for item in predictions.items}
    if not last.keys() & lines.keys():
        raise InputError(
            f"predictions and references have no id in common: the predictions begin with {predictions.items[0].id!r}, "
            f"the references with {references.items[0].id!r}; are they for the same questions?"
        )
    answered = tuple(last.get(i) for i in lines)
    columns = {"predictions": [item and item.value for item in answered], "references": values}
    aligned = Items(predictions.name, predictions.unit, tuple(item for item in answered if item))
    carriers = [references, aligned] if all(answered) else [references]
    return Given(columns | _extra(carriers, extra, fields), tuple(lines), _notes(predictions, lines))


def _notes(predictions: Items, known: Mapping[str, Any]) -> tuple[str, ...]:
    last = {item.id: item for item in predictions.items}
    unknown = [item for item in predictions.items if item.id not in known]
    replaced = [item for item in predictions.items if last[item.id] is not item and item.id in known]
    found = [
        ("Questions without a prediction, scored as unanswered", [i for i in known if i not in last]),
        ("Null predictions, scored as unanswered", [str(i) for i in known if i in last and last[i].value is None]),
        ("Predictions for unknown ids, left out", _at(predictions, unknown)),
        ("Predictions replaced by a later one with the same id", _at(predictions, replaced)),
        (f"Unreadable {predictions.unit}s, left out", [predictions.where(*bad) for bad in predictions.bad]),
    ]
    return tuple(f"{what}: {len(which)} ({some(which)})" for what, which in found if which)


def _at(given: Items, items: list[Any]) -> list[str]:
    return [f"{item.id}, {given.unit} {item.number}" for item in items]


def _extra(carriers: list[Items], given: Mapping[str, Items | None], fields: Mapping[str, str]) -> dict[str, list[Any]]:
    """The further columns: those given separately, and those in the rows."""
    columns = {}
    for name, items in given.items():
        if items is not None:
            columns[name] = with_fields(items, (fields[name],)).values()
        elif carrier := next((side for side in carriers if side.holds(fields[name])), None):
            columns[name] = carrier.values(fields[name])
    return columns


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
