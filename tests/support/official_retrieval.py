"""Answer Component MRR@k and Recall@k as fastbook-benchmark computes them, repairing both strings
of each pair.
"""

import functools
from typing import Any

import ftfy

fix = functools.cache(ftfy.fix_text)


def first_ranks(question: list[dict[str, Any]], passages: list[str]) -> list[int | None]:
    """The first rank at which each component is retrieved; None if it is not."""
    return [
        next((r for r, passage in enumerate(passages, 1) if any(fix(c) in fix(passage) for c in part["context"])), None)
        for part in question
    ]


def official(question: list[dict[str, Any]], passages: list[str], k: int) -> tuple[float, float]:
    """MRR@k and Recall@k of one question."""
    ranks = first_ranks(question, passages[:k])
    found = [rank for rank in ranks if rank is not None]
    return (1.0 / max(found) if len(found) == len(ranks) else 0.0), len(found) / len(ranks)
