"""Runs and relevance judgements in the text formats of TREC, which ir_measures, ranx, trec_eval and others read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qabench.benchmarks.fastbook.study.queries import Query
from qabench.retrieval.bm25.index import Hits
from qabench.text.repaired import RepairedTexts


def doc_id(chapter: int, position: int) -> str:
    """The id of a chunk: "13-c4" is the chunk at position 4 (from 0) of chapter 13."""
    return f"{chapter}-c{position}"


def run_text(queries: Sequence[Query], hits: Sequence[Hits], tag: str) -> str:
    """A run: lines of query id, "Q0", chunk id, rank (from 1), score, tag.

    Programs that read runs sort by score, some after rounding it to 32 bits, and break ties in ways of their own. So
    scores are written as 32-bit numbers, and where one is not below the one before it, it is the next smaller number.
    """
    lines = []
    tag = "".join(tag.split()) or "run"
    for query, found in zip(queries, hits, strict=True):
        last = np.float32(np.inf)
        for rank, (position, score) in enumerate(zip(found.positions, found.scores, strict=True), 1):
            last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
            lines.append(f"{query.id} Q0 {doc_id(query.chapter, position)} {rank} {last!s} {tag}\n")
    return "".join(lines)


def qrels_text(questions: Sequence[Mapping[str, Any]], corpus: Mapping[int, Sequence[str]]) -> str:
    """Judgements: lines of query id, "0", chunk id, and how many of the question's answer components the chunk holds.

    Every chunk of a question's chapter is judged, with 0 too: a question whose components no chunk holds stays in the
    means of other programs, as it does in ours.
    """
    repaired = RepairedTexts()
    lines = []
    for row in questions:
        components = [[repaired(context) for context in part["context"]] for part in row["answer_context"]]
        for position, chunk in enumerate(corpus[row["chapter"]]):
            text = repaired(chunk)
            held = sum(any(context in text for context in contexts) for contexts in components)
            lines.append(f"{row['id']} 0 {doc_id(row['chapter'], position)} {held}\n")
    return "".join(lines)
