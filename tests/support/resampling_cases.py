"""Synthetic scores for the tests of the statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def f1(tp: Any, fp: Any, fn: Any) -> Any:
    """0 if there is nothing to find and nothing was found."""
    return 2 * tp / np.maximum(2 * tp + fp + fn, 1)


def unsafe_f1(tp: Any, fp: Any, fn: Any) -> Any:
    return 2 * tp / (2 * tp + fp + fn)


def only_whole(*sums: Any) -> Any:
    """Return 1 for the first sample and NaN for the others."""
    return np.array([1.0] + [np.nan] * (len(sums[0]) - 1))


def verdicts(items: int, seed: int) -> Array:
    """Rows of true positives, false positives and false negatives, at most one of them 1."""
    return np.random.default_rng(seed).multinomial(1, [0.3, 0.15, 0.2, 0.35], size=items)[:, :3].astype(np.float64)


def in_questions(questions: int, items: int, seed: int, spread: float = 0.3) -> tuple[Array, list[int]]:
    """Scores around 0.5 of items that share their question's difficulty, and each item's question."""
    rng = np.random.default_rng(seed)
    hard = np.repeat(rng.normal(0, spread, questions), items)
    return 0.5 + hard + rng.normal(0, 0.1, questions * items), np.repeat(np.arange(questions), items).tolist()
