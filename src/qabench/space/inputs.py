"""Reads the input of a metric's page, pasted or as a file.

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
NAMED = 5  # lines or ids that a message lists; the others are counted
ID_FIELDS = ("id", "question_id", "example_id")
PREDICTION_FIELDS = ("prediction", "answer")


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
        bad: items that cannot be used: number and reason.
    """

    name: str
    unit: str
    items: tuple[Item, ...]
    bad: tuple[tuple[int, str], ...] = ()

    def have_ids(self) -> bool:
        """Whether there are items, and all have an id."""
        return bool(self.items) and all(item.id is not None for item in self.items)

    def values(self, field: str | None = None) -> list[Any]:
        """The values, or a field of all items.

        Raises:
            InputError: an item cannot be used, or does not have the field.
        """
        if self.bad:
            wrong = some([self.where(*bad) for bad in self.bad])
            raise InputError(f"{self.name}: {wrong}. Fix these items, or remove them on both sides")
        if field is None:
            return [item.value for item in self.items]
        return [self._field(item, field) for item in self.items]

    def where(self, number: int, reason: str) -> str:
        """The number of an item, with the reason."""
        return f"{self.unit} {number}: {reason}"

    def holds(self, field: str) -> bool:
        """Whether any item is an object with this field."""
        return any(field in (item.fields or {}) for item in self.items)

    def _field(self, item: Item, field: str) -> Any:
        if field not in (item.fields or {}):
            raise InputError(f"{self.name}: {self.unit} {item.number} has no {field!r}, but others have it")
        return (item.fields or {})[field]


def read_text(text: str, name: str) -> Items:
    """The items of a pasted text. Blank lines are skipped.

    Raises:
        InputError: the text is blank or too long, or neither it nor any of its lines is JSON.
    """
    check_size(len(text.encode("utf-8", "surrogatepass")), name)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InputError(f"{name}: empty; paste a JSON list, or JSONL with one item per line, or choose a file")
    if _is_list(text):
        values = enumerate(_parse_list(text, name), 1)
        return Items(name, "item", tuple(Item(number, value) for number, value in values))
    return _read_lines(text, name)


def read_file(path: str | Path, name: str) -> Items:
    """The items of a file, JSON or JSONL.

    Raises:
        InputError: as ``read_text``; also if the file is not UTF-8.
    """
    path = Path(path)
    name = f"{name} ({path.name})"
    check_size(path.stat().st_size, name)
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}: line {line} is not UTF-8 text; save the file as UTF-8") from None
    # By its extension, a JSONL file with one line has one item, even if that is a list.
    return _read_lines(text, name) if path.suffix == ".jsonl" and text.strip() else read_text(text, name)


def check_size(size: int, name: str) -> None:
    """Raises InputError if the number of bytes is above the limit of a page."""
    if size > MAX_BYTES:
        raise InputError(
            f"{name}: {size / 1024**2:.1f} MB; the limit of this page is {MAX_BYTES // 1024**2} MB. Score larger files "
            "on your own machine: pip install qabench, then qabench score or qabench.load_metric"
        )


def with_fields(given: Items, names: tuple[str, ...]) -> Items:
    """The items, with values instead of the objects that contain them.

    Args:
        given: the items as read.
        names: the fields that can contain the value. Objects with the first field always contain a value; objects with
            another field if all have it or there are ids. Other objects are values themselves.
    """
    objects = [item.value for item in given.items if isinstance(item.value, dict)]
    with_ids = any(field in value for value in objects for field in ID_FIELDS)
    for name in names:
        holders = sum(name in value for value in objects)
        if holders and (name == names[0] or with_ids or holders == len(given.items)):
            return _unpacked(given, name)
    if len(objects) == len(given.items):
        return replace(given, items=tuple(_with_id(item, item.value) for item in given.items))
    return given


def some(said: list[str]) -> str:
    """The first few items, and the number of the others."""
    return "; ".join(said[:NAMED]) + (f"; and {len(said) - NAMED} more" if len(said) > NAMED else "")


def _unpacked(given: Items, name: str) -> Items:
    good, bad = [], list(given.bad)
    for item in given.items:
        if not isinstance(item.value, dict):
            bad.append((item.number, f"{_kind(item.value)}, but others are objects with {name!r}"))
        elif name not in item.value:
            bad.append((item.number, f"without {name!r} (it has {', '.join(map(repr, item.value)) or 'no field'})"))
        else:
            good.append(_with_id(item, item.value[name]))
    return replace(given, items=tuple(good), bad=tuple(sorted(bad)))


def _with_id(item: Item, value: Any) -> Item:
    named = next((item.value[field] for field in ID_FIELDS if field in item.value), None)
    usable = isinstance(named, str | int) and not isinstance(named, bool)
    return Item(item.number, value, str(named) if usable else None, item.value)


def _kind(value: Any) -> str:
    names = {bool: "true or false", str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "null")


def _is_list(text: str) -> bool:
    """Whether a text is one JSON list. In JSONL, the first line is JSON by itself, and can also be a list."""
    if not text.lstrip().startswith("["):
        return False
    first, _, rest = text.strip().partition("\n")
    return not rest.strip() or isinstance(_parsed(first), str)


def _parse_list(text: str, name: str) -> list[Any]:
    parsed = _parsed(text)
    if isinstance(parsed, str):
        raise InputError(f"{name}: {parsed}")
    return list(parsed[0])


def _parsed(text: str) -> tuple[Any] | str:
    """The value of a JSON text in a tuple, or why it is not JSON."""
    try:
        return (json_of(text),)
    except ValueError as error:
        return why_not_json(error)


def _read_lines(text: str, name: str) -> Items:
    good, bad = [], []
    for number, line in numbered_lines(text):
        parsed = _parsed(line)
        if isinstance(parsed, str):
            bad.append((number, parsed))
        else:
            good.append(Item(number, parsed[0]))
    items = Items(name, "line", tuple(good), tuple(bad))
    if not good:
        raise InputError(
            f"{name}: {some([items.where(*line) for line in bad])}. Use a JSON list, or JSONL with one item per line; "
            'strings need double quotes: "Paris"'
        )
    return items
