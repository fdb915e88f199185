"""Which chunks contain which answer components, and the highest scores that any ranking of the chunks can reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabench.text.repaired import RepairedTexts


def covered(question: Mapping[str, Any], chunks: Sequence[str], repaired: RepairedTexts) -> list[int]:
    """For each chunk the set of the question's components that it contains, as bits: bit i is component i."""
    components = [[repaired(context) for context in part["context"]] for part in question["answer_context"]]
    texts = map(repaired, chunks)
    return [
        sum(1 << i for i, contexts in enumerate(components) if any(context in text for context in contexts))
        for text in texts
    ]


def ceiling(question: Mapping[str, Any], chunks: Sequence[str], k: int, repaired: RepairedTexts) -> tuple[float, float]:
    """The highest MRR@k and Recall@k of a question that any ranking of these chunks has; both in [0, 1].

    The best ranking begins with the fewest chunks that together contain all components.
    """
    components = len(question["answer_context"])
    everything = (1 << components) - 1
    chunks_with_any = set(covered(question, chunks, repaired)) - {0}
    reached, mrr = {0}, 0.0
    for rank in range(1, min(k, components) + 1):  # more chunks than components are never needed
        reached |= {found | more for found in reached for more in chunks_with_any}
        if everything in reached:
            mrr = 1 / rank
            break
    return mrr, max(found.bit_count() for found in reached) / components
