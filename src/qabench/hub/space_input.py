"""The input of a metric's page: read from pasted text or files, and aligned.

A list is JSON, or JSONL with one item per line. An item is a value, or an object with the value, an id and more:
``{"id": ..., "prediction": ..., "reference": ..., "question": ...}``, or a row of the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.io.limits import json_of, numbered_lines, why_not_json

MAX_BYTES = 5 * 1024 * 1024
ID_FIELDS = ("id", "question_id", "example_id")
PREDICTION_FIELDS = ("prediction", "answer")
MAX_LISTED = 5  # lines or ids that a message lists; the others are counted


@dataclass(frozen=True, slots=True)
class Item:
    """A line of JSONL, or an item of a JSON list: its number from 1, and its value."""

    number: int
    value: Any
    id: str | None = None
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """The items of one text.

    Attributes:
        name: the name of the text in messages.
        unit: "line" or "item".
        bad: the items that cannot be used: number and reason.
    """

    name: str
    unit: str
    items: tuple[Item, ...]
    bad: tuple[tuple[int, str], ...] = ()

    @property
    def problems(self) -> list[str]:
        """Return the items that cannot be used, with the reasons."""
        return [f"{self.unit} {number}: {reason}" for number, reason in self.bad]

    @property
    def ids(self) -> tuple[str, ...] | None:
        """Return the ids of all items, or None if not all have one."""
        ids = tuple(item.id for item in self.items if item.id is not None)
        return ids if ids and len(ids) == len(self.items) else None

    def has(self, field: str) -> bool:
        """Return whether any item is an object with this field."""
        return any(field in (item.fields or {}) for item in self.items)

    def values(self, field: str | None = None) -> list[Any]:
        """Return the values, or a field of all items.

        Raises:
            InputError: an item cannot be used, or does not have the field.
        """
        if self.bad:
            raise InputError(f"{self.name}: {_few(self.problems)}. Fix these items, or remove them on both sides")
        if field is None:
            return [item.value for item in self.items]
        if without := next((item for item in self.items if field not in (item.fields or {})), None):
            raise InputError(f"{self.name}: {self.unit} {without.number} has no {field!r}, but others have it")
        return [(item.fields or {})[field] for item in self.items]


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
    if not first.startswith("[") or (rest.strip() and isinstance(_parsed(first), tuple)):
        return _read_lines(text, name)
    parsed = _parsed(text)
    if isinstance(parsed, str):
        raise InputError(f"{name}: {parsed}")
    return Items(name, "item", tuple(Item(number, value) for number, value in enumerate(parsed[0], 1)))


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


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise InputError(
            f"{name}: {size / 1024**2:.1f} MB; the limit of this page is {MAX_BYTES // 1024**2} MB. Score larger files "
            "on your own machine: pip install qabench, then qabench score or qabench.load_metric"
        )


def _parsed(text: str) -> tuple[Any] | str:
    """Return the value of a JSON text in a tuple, or why it is not JSON."""
    try:
        return (json_of(text),)
    except ValueError as error:
        return why_not_json(error)


def _read_lines(text: str, name: str) -> Items:
    parsed = [(number, _parsed(line)) for number, line in numbered_lines(text)]
    good = tuple(Item(number, value[0]) for number, value in parsed if isinstance(value, tuple))
    items = Items(name, "line", good, tuple((number, reason) for number, reason in parsed if isinstance(reason, str)))
    if not good:
        raise InputError(
            f"{name}: {_few(items.problems)}. Use a JSON list, or JSONL with one item per line; strings need double "
            'quotes: "Paris"'
        )
    return items


def _unwrap(items: Items, names: tuple[str, ...]) -> Items:
    """Replace the objects that contain a value by the value.

    Args:
        items: the items as read.
        names: the fields that can contain the value. Objects with the first field always contain a value; objects with
            another field if all have it or there are ids. Other objects are values themselves.
    """
    objects = [item.value for item in items.items if isinstance(item.value, dict)]
    with_ids = any(field in value for value in objects for field in ID_FIELDS)
    for name in names:
        count = sum(name in value for value in objects)
        if count and (name == names[0] or with_ids or count == len(items.items)):
            return _unwrap_field(items, name)
    if len(objects) == len(items.items):
        return replace(items, items=tuple(_with_id(item, item.value) for item in items.items))
    return items


def _unwrap_field(items: Items, name: str) -> Items:
    kinds = {bool: "true or false", str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    good, bad = [], list(items.bad)
    for item in items.items:
        if not isinstance(item.value, dict):
            kind = kinds.get(type(item.value), "null")
            bad.append((item.number, f"{kind}, but others are objects with {name!r}"))
        elif name not in item.value:
            bad.append((item.number, f"without {name!r} (it has {', '.join(map(repr, item.value)) or 'no field'})"))
        else:
            good.append(_with_id(item, item.value[name]))
    return replace(items, items=tuple(good), bad=tuple(sorted(bad)))


def _with_id(item: Item, value: Any) -> Item:
    id = next((item.value[field] for field in ID_FIELDS if field in item.value), None)
    usable = isinstance(id, str | int) and not isinstance(id, bool)
    return Item(item.number, value, str(id) if usable else None, item.value)


@dataclass(frozen=True, slots=True)
class Aligned:
    """The input of a metric.

    Attributes:
        columns: aligned lists: "predictions", "references", and further columns of the metric.
        ids: the ids of the questions in order, or None.
        notes: notes for the user on how they were aligned.
    """

    columns: Mapping[str, list[Any]]
    ids: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


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
        if (field := next(filter(predictions.has, usable), None)) is None:
            raise InputError("references: empty; paste them, choose a file, or add a reference to each prediction")
        columns = {"predictions": predictions.values(), "references": predictions.values(field)}
        unused = (
            f"Each prediction contains its reference; those of {references.name} are not used." if references else ""
        )
        notes = (unused,) if unused else ()
        return Aligned(columns | _extra_columns([predictions], extra, fields), predictions.ids, notes)
    references = _unwrap(references, reference_fields)
    if predictions.ids and references.ids:
        return _align_by_id(predictions, references, extra, fields)
    columns = {"predictions": predictions.values(), "references": references.values()}
    ids = references.ids or predictions.ids
    notes = ("One side has no ids: predictions and references are matched by position.",) if ids else ()
    return Aligned(columns | _extra_columns([references, predictions], extra, fields), ids, notes)


def _align_by_id(
    predictions: Items, references: Items, extra: Mapping[str, Items | None], fields: Mapping[str, str]
) -> Aligned:
    values = references.values()
    numbers: dict[str, list[int]] = {}
    for item in references.items:
        numbers.setdefault(str(item.id), []).append(item.number)
    if repeated := [f"{i} ({references.unit}s {', '.join(map(str, n))})" for i, n in numbers.items() if len(n) > 1]:
        raise InputError(f"{references.name}: repeated ids: {_few(repeated)}")
    last = {str(item.id): item for item in predictions.items}
    if not last.keys() & numbers.keys():
        raise InputError(
            f"predictions and references have no id in common: the predictions begin with {predictions.items[0].id!r}, "
            f"the references with {references.items[0].id!r}; are they for the same questions?"
        )
    answers = tuple(last.get(id) for id in numbers)
    columns = {"predictions": [item and item.value for item in answers], "references": values}
    answered = replace(predictions, items=tuple(item for item in answers if item), bad=())
    sources = [references, answered] if all(answers) else [references]
    unknown = [item for item in predictions.items if item.id not in numbers]
    replaced = [item for item in predictions.items if last[str(item.id)] is not item and item.id in numbers]
    notes = {
        "Questions without a prediction, scored as unanswered": [id for id in numbers if id not in last],
        "Null predictions, scored as unanswered": [id for id in numbers if id in last and last[id].value is None],
        "Predictions for unknown ids, left out": [f"{item.id}, {predictions.unit} {item.number}" for item in unknown],
        "Predictions replaced by a later one with the same id": [
            f"{item.id}, {predictions.unit} {item.number}" for item in replaced
        ],
        f"Unreadable {predictions.unit}s, left out": predictions.problems,
    }
    texts = tuple(f"{text}: {len(items)} ({_few(items)})" for text, items in notes.items() if items)
    return Aligned(columns | _extra_columns(sources, extra, fields), tuple(numbers), texts)


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


def _few(texts: list[str]) -> str:
    more = f"; and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return "; ".join(texts[:MAX_LISTED]) + more
