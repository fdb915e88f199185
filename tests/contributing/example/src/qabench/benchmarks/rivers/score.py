"""The score of Rivers: a pure function, the same for metric, predictions and runs."""

from __future__ import annotations


def match(reference: str, answer: str | None, ignore_case: bool = True) -> float:
    """Whether an answer contains the reference: 1.0 or 0.0; 0.0 for no answer."""
    if answer is None:
        return 0.0
    return float(reference.lower() in answer.lower() if ignore_case else reference in answer)
