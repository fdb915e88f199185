"""What a person gives a metric's page, pasted or as a file: read into rows, and the rows put side by side.

A list is JSON, or JSONL with one item a line. An item is a value, or an object that carries it with an id and more:
``{"id": ..., "prediction": ..., "reference": ..., "question": ...}``, or a row of the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.limits import json_of, numbered_lines, why_not_json

MAX_BYTES = 5 * 1024 * 1024
NAMED = 5  # how many lines or ids a message names before it counts the rest
ID_FIELDS = ("id", "question_id", "example_id")
PREDICTION_FIELDS = ("prediction", "answer")


@dataclass(frozen=True, slots=True)
class Item:
    """A line of JSONL, or an item of a JSON list: its number from 1, and what it holds."""

    number: int
    value: Any
    id: str | None = None
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """What one text holds.

    Attributes:
        name: what messages call it. unit: "line" or "item".
        bad: items that cannot be used: number and reason.
    """

    name: str
    unit: str
    items: tuple[Item, ...]
    bad: tuple[tuple[int, str], ...] = ()

    def have_ids(self) -> bool:
        """Whether there are items, and every one has an id."""
        return bool(self.items) and all(item.id is not None for item in self.items)

    def values(self, field: str | None = None) -> list[Any]:
        """The values, or a field of all items.

        Raises:
            InputError: an item cannot be used, or lacks the field.
        """
        if self.bad:
            wrong = some([self.where(*bad) for bad in self.bad])
            raise InputError(f"{self.name}: {wrong}. Mend what is wrong there, or take it out on both sides")
        if field is None:
            return [item.value for item in self.items]
        return [self._field(item, field) for item in self.items]

    def where(self, number: int, reason: str) -> str:
        """The number and what is said of it."""
        return f"{self.unit} {number}: {reason}"

    def holds(self, field: str) -> bool:
        """Whether any item is an object with this field."""
        return any(field in (item.fields or {}) for item in self.items)

    def _field(self, item: Item, field: str) -> Any:
        if field not in (item.fields or {}):
            raise InputError(f"{self.name}: {self.unit} {item.number} has no {field!r}, which others have")
        return (item.fields or {})[field]


def read_text(text: str, name: str) -> Items:
    """The items of a pasted text. Blank lines are no items.

    Raises:
        InputError: the text is blank or too long, is not JSON, or no line of it is.
    """
    check_size(len(text.encode("utf-8", "surrogatepass")), name)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InputError(f"{name}: there is nothing yet; paste a JSON list, or JSONL with one a line, or choose a file")
    if _is_list(text):
        values = enumerate(_parse_list(text, name), 1)
        return Items(name, "item", tuple(Item(number, value) for number, value in values))
    return _read_lines(text, name)


def read_file(path: str | Path, name: str) -> Items:
    """The items of a file, JSON or JSONL.

    Raises:
        InputError: as ``read_text``; or the file is not UTF-8.
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
    # A file of one line is a list of one, if its name says that it has an item a line.
    return _read_lines(text, name) if path.suffix == ".jsonl" and text.strip() else read_text(text, name)


def check_size(size: int, name: str) -> None:
    """Raises InputError when that many bytes are more than a page takes."""
    if size > MAX_BYTES:
        raise InputError(
            f"{name}: {size / 1024**2:.1f} MB; this page takes up to {MAX_BYTES // 1024**2} MB. Score larger files on "
            "your own machine: pip install qabench, then qabench score or qabench.load_metric"
        )


def with_fields(given: Items, names: tuple[str, ...]) -> Items:
    """The items, with the values taken out of objects that carry them.

    Args:
        given: as read.
        names: the fields that hold a value. Objects with the first are always such objects; with another one, where all
            have it or there are ids. Other objects are values themselves.
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
    """The first few of them, and how many more there are."""
    return "; ".join(said[:NAMED]) + (f"; and {len(said) - NAMED} more" if len(said) > NAMED else "")


def _unpacked(given: Items, name: str) -> Items:
    good, bad = [], list(given.bad)
    for item in given.items:
        if not isinstance(item.value, dict):
            bad.append((item.number, f"{_kind(item.value)}, where others are objects with {name!r}"))
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
    """Whether a text is meant as one JSON list; JSONL, whose first line is JSON by itself, may hold lists too."""
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
    """What a text says, in a tuple; or why it is not JSON."""
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
            f"{name}: {some([items.where(*line) for line in bad])}. Give a JSON list, or JSONL with one a line; "
            'text stands in double quotes: "Paris"'
        )
    return items
