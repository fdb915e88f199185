"""Which fields of a harness's log are in signatures, and why.

Each harness has tables of the fields that its logs have. A field or an argument that is not in
these tables is signed, and counts as a deviation, until a developer classifies it.
docs/reference/signatures.md shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qabench.data.rows import Json
from qabench.evaluation.signature import digest

# The value is in the signature. It is a deviation, unless the benchmark declares it official.
SIGNED = "signed"
# The value is in the signature, as a part of the system that is evaluated.
SYSTEM = "system"
# The value is not in the signature: it changes no reply, or is checked in another way.
UNSIGNED = "unsigned"
Facts = Mapping[str, tuple[str, str]]
"""Name of a field -> its treatment, and the reason."""


def signed(values: Mapping[str, Any], table: Facts) -> Json:
    """Return all values but those that a table declares unsigned. Digests replace lists and objects."""
    fields: Json = {}
    for name, value in values.items():
        treatment, _ = table.get(name, (SIGNED, ""))
        # Harnesses write empty lists and objects for fields that were not set.
        if treatment == UNSIGNED or value in ({}, []):
            continue
        if not isinstance(value, str | int | float):
            value = digest([value])
        fields[name] = value
    return fields


def only_special_tokens(stops: Any) -> bool:
    """Tell whether all stop strings are special tokens, such as <|endoftext|>."""
    texts = [stops] if isinstance(stops, str) else stops
    if not isinstance(texts, list):
        return False
    for text in texts:
        if not isinstance(text, str) or not (text.startswith("<") and text.endswith(">")):
            return False
    return True


def tables_of(content: Json) -> dict[str, tuple[str, Facts]]:
    """Return the tables of a JSON file by name: a title, and each field's treatment and reason."""
    tables: dict[str, tuple[str, Facts]] = {}
    for kind, table in content.items():
        fields: dict[str, tuple[str, str]] = {}
        for row in table["fields"]:
            fields |= dict.fromkeys(row["names"].split(), (row["treatment"], row["reason"]))
        tables[kind] = (table["title"], fields)
    return tables
