"""Checks of aligned lists that scores share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qabench.answers import UNANSWERED
from qabench.errors import InputError


def check_pairs(references: Sequence[Any], predictions: Sequence[Any]) -> None:
    """Raises InputError unless there is one prediction for each reference, and at least one."""
    if len(references) != len(predictions):
        raise InputError(f"{len(predictions)} predictions for {len(references)} references; expected one for each")
    if not references:
        raise InputError("nothing to score: no references")


def text_pairs(references: Sequence[Any], predictions: Sequence[Any]) -> tuple[list[str], list[str | None]]:
    """References and predictions that are strings; None for a prediction that is None or ``UNANSWERED``.

    Raises:
        InputError: no references, lists of different lengths, or an item that is not a string.
    """
    check_pairs(references, predictions)
    targets = [_text(text, f"references[{i}]") for i, text in enumerate(references)]
    answers = [
        None if text is None or text is UNANSWERED else _text(text, f"predictions[{i}]")
        for i, text in enumerate(predictions)
    ]
    return targets, answers


def _text(text: Any, where: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{where} is {text!r:.80}; allowed: a string")
    return text
