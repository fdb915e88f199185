"""Strict reading of data files.

A row that does not match the schema is an error that names file, row and field.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from qabench.errors import DataError
from qabench.io.limits import json_of, numbered_lines

Row = Mapping[str, Any]
"""A row of a dataset: its values by column."""
Splits = Mapping[str, Iterable[Row]]
"""The rows of each split, by the split's name."""
Json = dict[str, Any]
"""A JSON object, such as a line of a file or the result of a metric."""
JSON_NAMES: dict[type | None, str] = {
    None: "null",
    dict: "object",
    list: "list",
    str: "string",
    int: "integer",
    float: "number",
    bool: "true or false",
}
# The first bytes of files that are not text.
_OTHER_FILES = {b"PAR1": "a Parquet file", b"PK\x03\x04": "a ZIP file", b"\x1f\x8b": "a gzip file"}

Key = TypeVar("Key")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in order.

    Examples:
        >>> grouped([("a", 1), ("b", 2), ("a", 3)])
        {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def natural_key(name: str) -> tuple[tuple[tuple[bool, int, str], ...], str]:
    """Return a key that sorts names as people do: "chapter 2" before "chapter 10".

    Names that differ only by case have different keys, so that their order is always the same.
    """
    parts = []
    for part in re.findall(r"[0-9]+|[^0-9]+", name):
        is_number = part[0] in "0123456789"
        # Names with longer numbers are unlikely, and Python refuses to read thousands of digits.
        number = int(part[:18]) if is_number else 0
        parts.append((not is_number, number, part.casefold()))
    return tuple(parts), name


def without_none(values: Mapping[str, Any]) -> Json:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


# Creating an object of a frozen class would take three times as long.
@dataclass(slots=True)
class SourceRow:
    """A JSON object of a data file.

    Attributes:
        fields: its fields.
        where: its position for error messages, such as ``questions.json, row 3``.
    """

    fields: Mapping[str, Any]
    where: str

    @classmethod
    def of(cls, value: Any, where: str) -> SourceRow:
        """Return ``value`` as a row. Raises DataError if it is not an object."""
        if not isinstance(value, dict):
            raise DataError(f"{where}: expected an object, got {_shown(value)}")
        return cls(value, where)

    def only(self, *keys: str) -> SourceRow:
        """Return the row.

        Raises:
            DataError: it has a field that is not in ``keys``, and would be lost.
        """
        unknown = [key for key in self.fields if key not in keys]
        if unknown:
            raise DataError(
                f"{self.where}: unknown field {unknown[0]!r}; the fields are {', '.join(keys)}"
            )
        return self

    def read(self, kinds: Mapping[str, Any]) -> Json:
        """Return the fields, which must be exactly these.

        The kind of a field is a type, a list with the type or the fields of its items, or a
        function of the row and the field's name.
        """
        self.only(*kinds)
        values: Json = {}
        for key, kind in kinds.items():
            if isinstance(kind, type):
                values[key] = self.get(key, kind)
            elif not isinstance(kind, list):
                values[key] = kind(self, key)
            elif isinstance(kind[0], type):
                values[key] = self.list_of(key, kind[0])
            else:
                values[key] = [row.read(kind[0]) for row in self.rows(key)]
        return values

    def get(self, key: str, *types: type | None) -> Any:
        """Return the field ``key``.

        Raises:
            DataError: it has none of ``types``. None allows null.
        """
        if key not in self.fields:
            raise DataError(f"{self.where}: the field {key!r} is missing")
        value = self.fields[key]
        # bool is a subclass of int in Python, but true is not a number in a data file.
        if (None if value is None else type(value)) in types:
            if type(value) is str and not value.isascii():
                self.check_text(key, value)
            return value
        expected = " or ".join(JSON_NAMES[type_] for type_ in types)
        raise DataError(f"{self.where}, field {key!r}: expected {expected}, got {_shown(value)}")

    def number(self, key: str, *null: None) -> Any:
        """Return the field ``key`` as a float.

        Raises:
            DataError: it is not a number, or is an integer that is too large for a float.
        """
        value = self.get(key, float, int, *null)
        try:
            return None if value is None else float(value)
        except OverflowError:
            raise DataError(f"{self.where}, field {key!r}: {_shown(value)} is too large") from None

    def list_of(self, key: str, kind: type = str) -> list[Any]:
        """Return the field ``key``, a list whose items all have the type ``kind``."""
        items: list[Any] = self.get(key, list)
        for i, item in enumerate(items):
            if type(item) is not kind:
                raise DataError(
                    f"{self.where}, field {key!r}[{i}]: expected {JSON_NAMES[kind]}, got {_shown(item)}"
                )
            if type(item) is str and not item.isascii():
                self.check_text(key, item)
        return items

    def one_of(self, key: str, allowed: Iterable[str]) -> str:
        """Return the field ``key``, a string. Raises DataError unless it is one of ``allowed``."""
        value: str = self.get(key, str)
        if value not in allowed:
            raise DataError(
                f"{self.where}, field {key!r}: expected one of {', '.join(allowed)}, got {value!r:.60}"
            )
        return value

    def object(self, key: str, *keys: str) -> SourceRow:
        """Return the field ``key``, an object without other fields than ``keys``, as a row."""
        return self.of(self.get(key, dict), f"{self.where}, field {key!r}").only(*keys)

    def rows(self, key: str) -> Iterator[SourceRow]:
        """Yield the field ``key``, a list of objects, as rows."""
        for i, item in enumerate(self.get(key, list)):
            yield self.of(item, f"{self.where}, field {key!r}[{i}]")

    def check_text(self, key: str, value: str) -> None:
        """Raise DataError for a string that Arrow cannot store (with a lone surrogate)."""
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"{self.where}, field {key!r}: a lone surrogate at character {error.start}: not Unicode text"
            ) from None


def read_json_list(path: Path) -> Iterator[SourceRow]:
    """Return the rows of a file with a JSON list of objects (see ``json_list_rows``)."""
    return json_list_rows(path.read_bytes(), str(path))


def json_list_rows(data: bytes, name: str) -> Iterator[SourceRow]:
    """Yield the rows of a JSON list of objects. ``SourceRow.where`` counts rows from 0.

    JSON Lines are read as well (see ``json_rows``), so that an error about a file of another
    dataset is about its fields, and not about its form.

    Raises:
        DataError: the data is neither a JSON list of objects nor JSON Lines.
    """
    if _are_json_lines(data):
        yield from json_rows(data, name)
        return
    values = _parse(data, name, expected="a JSON list of rows, or one JSON object per line")
    if not isinstance(values, list):
        raise DataError(f"{name}: expected a list of rows, got {_shown(values)}")
    for i, value in enumerate(values):
        # The memory of a row is free for the next ones as soon as the caller has read it.
        values[i] = None
        id = value.get("id") if isinstance(value, dict) else None
        shown = f" (id {id!r:.80})" if isinstance(id, str) else ""
        yield SourceRow.of(value, f"{name}, row {i}{shown}")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        DataError: the file is not UTF-8, or not JSON. The message names line and column.
    """
    data = path.read_bytes()
    if _are_json_lines(data):
        raise DataError(f"{path}: expected one JSON document, got JSON Lines (one object per line)")
    return _parse(data, str(path))


def read_json_lines(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a JSONL file (see ``json_rows``)."""
    with path.open("rb") as file:
        yield from json_rows(file, str(path))


def json_rows(lines: bytes | IO[bytes], name: str) -> Iterator[SourceRow]:
    """Yield the rows of JSONL, counted from line 1.

    NaN is read as ``float("nan")``: some sources contain it, and their parsers decide where it is
    allowed. Raises DataError for a line that is not a JSON object.
    """
    for number, line in numbered_lines(lines):
        where = f"{name}, line {number}"
        encoding, expected = "utf-8", ""
        if number == 1:
            # A first line that is not JSON means another kind of file, such as a JSON list.
            encoding, expected = "utf-8-sig", "one JSON object per line"
        yield SourceRow.of(_parse(line, where, encoding, expected), where)


def _are_json_lines(data: bytes) -> bool:
    """Tell whether the first of several lines is a JSON object, as in JSON Lines."""
    first_line, _, rest = data.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")
    if not first_line.startswith(b"{") or not rest.strip():
        return False
    try:
        return isinstance(json_of(first_line), dict)
    except ValueError:
        return False


def _parse(data: bytes, where: str, encoding: str = "utf-8-sig", expected: str = "") -> Any:
    try:
        return json_of(data.decode(encoding))
    except ValueError as error:
        problem = f"{where}: not JSON ({error})"
        for mark, kind in _OTHER_FILES.items():
            if data.startswith(mark):
                problem = f"{where}: not JSON, but {kind}"
        if expected:
            problem += f"; expected {expected}"
        raise DataError(problem) from None


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    kind = JSON_NAMES.get(type(value), type(value).__name__)
    return f"{kind} {value!r:.60}"
