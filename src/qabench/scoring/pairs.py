"""The check of aligned lists that all scores share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qabench.errors import InputError


def check_pairs(references: Sequence[Any], predictions: Sequence[Any]) -> None:
    """Raises InputError unless there is one prediction for each reference, and at least one."""
    if len(references) != len(predictions):
        raise InputError(f"{len(predictions)} predictions for {len(references)} references; expected one for each")
    if not references:
        raise InputError("nothing to score: no references")
