"""BM25 on real texts against rank_bm25: ExpertQA's passages, all scores compared."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.tokenizers import words

rank_bm25 = pytest.importorskip("rank_bm25", reason="needs the extra retrieval")

METHODS = {"okapi": rank_bm25.BM25Okapi, "bm25+": rank_bm25.BM25Plus, "bm25l": rank_bm25.BM25L}
K = 10


def compare(texts: Sequence[str], queries: Sequence[str]) -> int:
    """Compares all scores, and the order of the best with ties by position; returns the number of scores."""
    compared = 0
    tokens = [words(text) for text in texts]
    for method, oracle in METHODS.items():
        theirs = oracle(tokens)
        index = BM25Index(texts, method)
        hits = index.search_batch(queries, K)
        for query, found in zip(queries, hits, strict=True):
            scores = theirs.get_scores(words(query))
            # Equal to the last bit, so the groups of ties are equal too.
            assert index.scores(query).tolist() == scores.tolist(), (method, query)
            order = np.lexsort((np.arange(len(scores)), -scores))[:K]
            assert found.positions == order.tolist(), (method, query)
            assert found.scores == scores[order].tolist(), (method, query)
            compared += len(scores)
    return compared


def expertqa(mirror: Path) -> tuple[list[str], list[str]]:
    """The distinct answers and pieces of evidence, long ones in paragraphs, and the questions."""
    texts: dict[str, None] = {}
    questions: dict[str, None] = {}
    for name in ("rand_test.jsonl", "rand_val.jsonl"):
        with (mirror / "chaitanyamalaviya/ExpertQA/data/lfqa" / name).open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                questions[row["question"]] = None
                for answer in row["answers"].values():
                    evidence = [piece for claim in answer["claims"] or () for piece in claim["evidence"] or ()]
                    for text in (answer["answer_string"], *evidence):
                        texts |= dict.fromkeys(re.split(r"\n+", text))
    return list(texts), list(questions)


@pytest.mark.parametrize("count", [25, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("with_numba")
def test_questions_of_expertqa_over_its_passages(mirror: Path, count: int | None) -> None:
    texts, questions = expertqa(mirror)
    assert len(texts) > 4096  # pruned if the terms have more than 10,000 postings
    assert compare(texts, questions[:count]) == 3 * len(texts) * len(questions[:count])
