"""The input of a metric's page: read from pasted text or files, and aligned.

A list is JSON, or JSONL with one item per line. An item is a value, or an object with the value, an id and more:
``{"id": ..., "prediction": ..., "reference": ..., "question": ...}``, or a row of the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from qabench.data.predictions import some
from qabench.errors import InputError
from qabench.io.limits import json_of, numbered_lines, why_not_json

MAX_BYTES = 5 * 1024 * 1024
ID_FIELDS = ("id", "question_id", "example_id")
PREDICTION_FIELDS = ("prediction", "answer")


@dataclass(frozen=True, slots=True)
class Item:
    """A line of JSONL, or an item of a JSON list: its place ("line 3"), its value, and the object that contained it."""

    place: str
    value: Any
    id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Items:
    """The items of one text: its name in messages, "line" or "item", the items, and why others cannot be used."""

    name: str
    unit: str
    items: tuple[Item, ...]
    problems: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all items; () if not all have one."""
        ids = tuple(item.id for item in self.items if item.id is not None)
        return ids if len(ids) == len(self.items) else ()

    def has(self, name: str) -> bool:
        """Return whether any item is an object with this field."""
        return any(name in item.fields for item in self.items)

    def values(self, name: str | None = None) -> list[Any]:
        """Return the values, or a field of all items; raise InputError if an item cannot be used, or lacks it."""
        if self.problems:
            raise InputError(f"{self.name}: {some(self.problems)}. Fix these items, or remove them on both sides")
        if name is None:
            return [item.value for item in self.items]
        if without := [item for item in self.items if name not in item.fields]:
            raise InputError(f"{self.name}: {without[0].place} has no {name!r}, but others have it")
        return [item.fields[name] for item in self.items]


class Aligned(NamedTuple):
    """The input of a metric: aligned columns, the questions' ids in order (or ()), and notes for the user."""

    columns: dict[str, list[Any]]
    ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_text(text: str, name: str) -> Items:
    """Return the items of a pasted text, JSON or JSONL. Blank lines are skipped.

    Raises:
        InputError: the text is blank or too long, or neither it nor any of its lines is JSON.
    """
    _check_size(len(text.encode("utf-8", "surrogatepass")), name)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InputError(f"{name}: empty; paste a JSON list, or JSONL with one item per line, or choose a file")
    # In JSONL, the first line is JSON by itself, and can also be a list.
    first, _, rest = text.strip().partition("\n")
    if not first.startswith("[") or (rest.strip() and not isinstance(_parsed(first), ValueError)):
        return _read_lines(text, name)
    values = _parsed(text)
    if isinstance(values, ValueError):
        raise InputError(f"{name}: {why_not_json(values)}")
    return Items(name, "item", tuple(Item(f"item {n}", value) for n, value in enumerate(values, 1)))


def read_file(path: str | Path, name: str) -> Items:
    """Return the items of a file, JSON or JSONL in UTF-8; see ``read_text``."""
    path = Path(path)
    name = f"{name} ({path.name})"
    _check_size(path.stat().st_size, name)
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}: line {line} is not UTF-8 text; save the file as UTF-8") from None
    # By its extension, a JSONL file with one line has one item, even if that is a list.
    return _read_lines(text, name) if path.suffix == ".jsonl" and text.strip() else read_text(text, name)


def align(
    predictions: Items, references: Items | None, extra: Mapping[str, Items | None], fields: Mapping[str, str]
) -> Aligned:
    """Align predictions and references: by id if both have ids, else by position.

    Args:
        predictions: the predictions as read; their objects may contain references, which then count, and further
            columns.
        references: the references as read; None if the predictions contain them.
        extra: further columns that were entered separately, in the order of the references, or None.
        fields: the field of a row for "references" and each further column, such as {"domains": "domain"}.

    Returns:
        Unanswered questions have None as the prediction; of several predictions with the same id, the last counts.

    Raises:
        InputError: there are no references; an item cannot be used and there are no ids to align the others; no id is
            on both sides; an id is repeated in the references; a column has gaps.
    """
    reference_fields = ("reference", fields["references"]) if fields.get("references") else ("reference",)
    predictions = _unwrap(predictions, PREDICTION_FIELDS)
    if references is None or (predictions.has("reference") and any(map(predictions.has, PREDICTION_FIELDS))):
        # An object whose answer is the prediction has no reference in that field.
        usable = reference_fields if predictions.has("prediction") else reference_fields[:1]
        if (name := next(filter(predictions.has, usable), None)) is None:
            raise InputError("references: empty; paste them, choose a file, or add a reference to each prediction")
        columns = {"predictions": predictions.values(), "references": predictions.values(name)}
        notes = [f"Each prediction contains its reference; those of {r.name} are not used." for r in [references] if r]
        return Aligned(columns | _extra_columns([predictions], extra, fields), predictions.ids, tuple(notes))
    references = _unwrap(references, reference_fields)
    if predictions.ids and references.ids:
        return _align_by_id(predictions, references, extra, fields)
    columns = {"predictions": predictions.values(), "references": references.values()}
    ids = references.ids or predictions.ids
    notes = ["One side has no ids: predictions and references are matched by position."] if ids else []
    return Aligned(columns | _extra_columns([references, predictions], extra, fields), ids, tuple(notes))


def _align_by_id(
    predictions: Items, references: Items, extra: Mapping[str, Items | None], fields: Mapping[str, str]
) -> Aligned:
    values = references.values()
    places: dict[str, list[str]] = {}
    for id, item in zip(references.ids, references.items, strict=True):
        places.setdefault(id, []).append(item.place)
    if repeated := [f"{id} ({' and '.join(where)})" for id, where in places.items() if len(where) > 1]:
        raise InputError(f"{references.name}: repeated ids: {some(repeated)}")
    last = dict(zip(predictions.ids, predictions.items, strict=True))
    if not last.keys() & places.keys():
        raise InputError(
            f"predictions and references have no id in common: the predictions begin with {predictions.ids[0]!r}, "
            f"the references with {references.ids[0]!r}; are they for the same questions?"
        )
    answers = [last.get(id) for id in places]
    columns = {"predictions": [item and item.value for item in answers], "references": values}
    answered = replace(predictions, items=tuple(item for item in answers if item), problems=())
    sources = [references, answered] if all(answers) else [references]
    unknown = [item for item in predictions.items if item.id not in places]
    replaced = [item for item in predictions.items if item.id in places and item is not last[str(item.id)]]
    notes = {
        "Questions without a prediction, scored as unanswered": [id for id in places if id not in last],
        "Null predictions, scored as unanswered": [id for id in places if id in last and last[id].value is None],
        "Predictions for unknown ids, left out": [f"{item.id}, {item.place}" for item in unknown],
        "Predictions replaced by a later one with the same id": [f"{item.id}, {item.place}" for item in replaced],
        f"Unreadable {predictions.unit}s, left out": list(predictions.problems),
    }
    texts = tuple(f"{text}: {len(items)} ({some(items)})" for text, items in notes.items() if items)
    return Aligned(columns | _extra_columns(sources, extra, fields), tuple(places), texts)


def _extra_columns(
    sources: list[Items], extra: Mapping[str, Items | None], fields: Mapping[str, str]
) -> dict[str, list[Any]]:
    """Return the further columns: those entered separately, and those in the rows."""
    columns = {}
    for name, items in extra.items():
        if items is not None:
            columns[name] = _unwrap(items, (fields[name],)).values()
        elif source := next((side for side in sources if side.has(fields[name])), None):
            columns[name] = source.values(fields[name])
    return columns


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise InputError(
            f"{name}: {size / 1024**2:.1f} MB; the limit of this page is {MAX_BYTES // 1024**2} MB. Score larger files "
            "on your own machine: install qabench, then use qabench score or qabench.load_metric"
        )


def _parsed(text: str) -> Any:
    """Return the value of a JSON text, or the error."""
    try:
        return json_of(text)
    except ValueError as error:
        return error


def _read_lines(text: str, name: str) -> Items:
    values = {f"line {number}": _parsed(line) for number, line in numbered_lines(text)}
    problems = tuple(f"{place}: {why_not_json(v)}" for place, v in values.items() if isinstance(v, ValueError))
    items = tuple(Item(place, value) for place, value in values.items() if not isinstance(value, ValueError))
    if not items:
        raise InputError(
            f"{name}: {some(problems)}. Use a JSON list, or JSONL with one item per line; strings need double "
            'quotes: "Paris"'
        )
    return Items(name, "line", items, problems)


def _unwrap(items: Items, names: tuple[str, ...]) -> Items:
    """Replace the objects that contain a value by the value.

    Objects with the first name as a field always contain a value; objects with another one if all have it or there are
    ids. Other objects are values themselves.
    """
    objects = [item.value for item in items.items if isinstance(item.value, dict)]
    with_ids = any(name in value for value in objects for name in ID_FIELDS)
    for name in names:
        count = sum(name in value for value in objects)
        if count and (name == names[0] or with_ids or count == len(items.items)):
            unwrapped, problems = [], list(items.problems)
            for item in items.items:
                if isinstance(item.value, dict) and name in item.value:
                    unwrapped.append(_with_id(item, item.value[name]))
                else:
                    problems.append(f"{item.place} is {item.value!r:.80}, but others are objects with {name!r}")
            return replace(items, items=tuple(unwrapped), problems=tuple(problems))
    if len(objects) == len(items.items):
        return replace(items, items=tuple(_with_id(item, item.value) for item in items.items))
    return items


def _with_id(item: Item, value: Any) -> Item:
    id = next((item.value[name] for name in ID_FIELDS if name in item.value), None)
    usable = isinstance(id, str | int) and not isinstance(id, bool)
    return Item(item.place, value, str(id) if usable else None, item.value)
