"""What each field of Inspect AI's log means for a run's signatures. The tables are in ``facts.json``.

A field or an argument that is not in these tables is signed, and a deviation, until somebody
decides. A test compares the tables with the classes of the installed Inspect AI.
Docs/reference/signatures.md shows them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from qabench.data.rows import Json
from qabench.evaluation.signature import digest

ASKED_WITH = "asked_with"  # in the metadata of a task: the fields of signatures that say how it asks
SIGNED = "signed"  # a deviation, unless the benchmark declares the value official
SYSTEM = "system"  # signed, as a part of the system that is evaluated
UNSIGNED = "unsigned"  # changes no reply, or is checked in another way
Facts = Mapping[str, tuple[str, str]]
"""Name of a field -> its treatment, and the reason."""


def signed(values: Mapping[str, Any], table: Facts) -> Json:
    """Return the values that a table says are signed, with digests of lists and objects. Empty ones are left out."""
    return {
        name: value if isinstance(value, str | int | float) else digest([value])
        for name, value in values.items()
        if value not in ({}, []) and table.get(name, (SIGNED,))[0] != UNSIGNED
    }


def only_special_tokens(stops: Any) -> bool:
    """Return whether all stop strings are special tokens, such as <|endoftext|>, which no answer contains."""
    texts = [stops] if isinstance(stops, str) else stops
    return isinstance(texts, list) and all(
        isinstance(text, str) and text.startswith("<") and text.endswith(">") for text in texts
    )


def tables_of(content: Json) -> dict[str, tuple[str, Facts]]:
    """Return the tables of a JSON file by name: a title, and the treatment of each field with its reason."""
    tables: dict[str, tuple[str, Facts]] = {}
    for kind, table in content.items():
        fields: dict[str, tuple[str, str]] = {}
        for row in table["fields"]:
            fields |= dict.fromkeys(row["names"].split(), (row["treatment"], row["reason"]))
        tables[kind] = (table["title"], fields)
    return tables


_content = json.loads(resources.files("qabench.tasks").joinpath("facts.json").read_text("utf-8"))
TABLES = tables_of(_content)
"""Class of Inspect's log -> a title, and the treatment of its fields."""

GENERATE_CONFIG = TABLES["GenerateConfig"][1]
EVAL_CONFIG = TABLES["EvalConfig"][1]
EVAL_SPEC = TABLES["EvalSpec"][1]
EVAL_PLAN = TABLES["EvalPlan"][1]
EVAL_PLAN_STEP = TABLES["EvalPlanStep"][1]
MODEL_ARGS = TABLES["MODEL_ARGS"][1]
"""Argument of a provider (``-M``), with underscores -> its treatment, and the reason."""
