"""Descriptions of a dataset's fields, from the ``fields.json`` of its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qabench.data.rows import read_json
from qabench.errors import InputError
from qabench.loading_scripts import DatasetTable

FIELDS = "fields.json"


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """The description of a field.

    Attributes:
        text: a phrase, such as "the domain of the prompt".
        values: all values that the field can have, or None if there is no such list. A field with
            such a list is still a string column, because a ``ClassLabel`` cannot have both null and
            "".
    """

    text: str
    values: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        if self.values is None:
            return self.text
        end = "" if self.text.endswith(("?", ".")) else "."
        values = ", ".join(json.dumps(value, ensure_ascii=False) for value in self.values)
        start = "Always" if len(self.values) == 1 else "One of:"
        return f"{self.text}{end} {start} {values}"


def field_descriptions(table: DatasetTable, config: str) -> dict[str, FieldDescription]:
    """Return the descriptions of a config's fields by path, such as "answers.claims.support".

    A config that ``fields.json`` does not list has the descriptions of the default config, as in
    ``features.json``. Empty if the dataset has no ``fields.json``.

    Raises:
        InputError: the file does not map configs to objects of fields, or the entry of a field is
            neither a string nor an object with ``text`` and ``values``.
    """
    path = table.folder / FIELDS
    if not path.is_file():
        return {}
    declared = read_json(path)
    if not isinstance(declared, dict):
        raise InputError(f"{path} must be a JSON object: config -> field -> description")
    name = config.removeprefix("sample_")
    if name not in declared:
        name = table.default
    fields = declared.get(name, {})
    if not isinstance(fields, dict):
        raise InputError(f"{path}, {config!r} must be a JSON object: field -> description")
    descriptions = {}
    for name, entry in fields.items():
        if isinstance(entry, str):
            descriptions[name] = FieldDescription(entry)
        elif _is_vocabulary(entry):
            descriptions[name] = FieldDescription(entry["text"], tuple(entry["values"]))
        else:
            raise InputError(
                f"{path}, {config!r}, field {name!r} is {entry!r:.80}; allowed: a string, or an object with the string "
                '"text" and the list "values"'
            )
    return descriptions


def _is_vocabulary(entry: Any) -> bool:
    return (
        isinstance(entry, Mapping)
        and entry.keys() == {"text", "values"}
        and isinstance(entry["text"], str)
        and isinstance(entry["values"], list)
    )
