"""What each field of Inspect AI's log means for a run's signatures.

The tables are in ``facts.json``. A test compares them with the classes of the installed Inspect AI,
so that no new field is overlooked.
"""

from __future__ import annotations

import json
from importlib import resources

from qabench.evaluation.harness_fields import tables_of

# The key in a task's metadata for the signature fields that say how the model is asked.
ASKED_WITH = "asked_with"

_content = json.loads(
    resources.files("qabench.adapters.inspect_ai").joinpath("facts.json").read_text("utf-8")
)
TABLES = tables_of(_content)
"""Class of Inspect's log -> a title, and the treatment of its fields."""

GENERATE_CONFIG = TABLES["GenerateConfig"][1]
EVAL_CONFIG = TABLES["EvalConfig"][1]
EVAL_SPEC = TABLES["EvalSpec"][1]
MODEL_ARGS = TABLES["MODEL_ARGS"][1]
"""Argument of a provider (``-M``), with underscores -> its treatment, and the reason."""
