"""Answer Component MRR@10 and Recall@10 of the 191 fastbook questions: the official loop and
qabench.

The rankings come from full-text search for keywords over chunks of about 500 tokens, as in the
source's study. The official code repairs both strings for each pair of context and passage,
separately for each of the two scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ftfy
from cases import Case, Measured, timed

from qabench.benchmarks import benchmark
from qabench.benchmarks.fastbook.answer_components import answer_component_scores
from qabench.benchmarks.fastbook.retrieval import retrieve
from qabench.text import repaired

K = 10
Scores = tuple[list[float], list[float]]


def first_rank(contexts: list[str], passages: list[str]) -> int | None:
    for rank, passage in enumerate(passages, 1):
        for context in contexts:
            if ftfy.fix_text(context) in ftfy.fix_text(passage):
                return rank
    return None


def official_mrr(components: list[dict[str, Any]], passages: list[str]) -> float:
    largest = 0
    for component in components:
        rank = first_rank(component["context"], passages)
        if rank is None:
            return 0.0
        largest = max(largest, rank)
    return 1.0 / largest if largest else 0.0


def official_recall(components: list[dict[str, Any]], passages: list[str]) -> float:
    return sum(
        first_rank(component["context"], passages) is not None for component in components
    ) / len(components)


def official(references: list[Any], rankings: list[list[str]]) -> Scores:
    pairs = list(zip(references, rankings, strict=True))
    return [official_mrr(*pair) for pair in pairs], [official_recall(*pair) for pair in pairs]


def scores(references: list[Any], rankings: list[list[str]]) -> Scores:
    score = answer_component_scores(references, rankings, K)
    return score.per_question("mrr", K), score.per_question("recall", K)


def copies(rankings: list[list[str]]) -> list[list[str]]:
    """Equal strings that are other objects, as if read from a file or an Arrow column."""
    return [[("." + text)[1:] for text in passages] for passages in rankings]


def cases(size: int | None = None) -> Iterator[Case]:
    questions = benchmark("fastbook").load("questions").rows
    references = [question.row["answer_context"] for question in questions]
    predicted = retrieve(questions, "questions", "fts", None, K).predicted
    rankings = [fields["passages"] for fields in predicted.values()]

    def ours(new_objects: bool = False, cached: bool = True) -> Measured:
        passages = copies(rankings) if new_objects else rankings
        if not cached:
            repaired.cache_clear()
        return timed(lambda: scores(references, passages))

    others = {"the authors' loop": lambda: official(references, rankings)}
    yield Case("191 questions, no string repaired before", lambda: ours(cached=False), others)
    yield Case("the second system over a corpus", lambda: ours(), others)
    yield Case(
        "the second system, equal strings as new objects", lambda: ours(new_objects=True), others
    )
