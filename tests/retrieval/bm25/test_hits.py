"""Hits: those of a batch are those of single searches, and one is kept without the others."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from qabench.retrieval import BM25Index, Hits

TEXTS = [f"{word} common" * (1 + number % 3) for number, word in enumerate("abcdefghij")]
QUERIES = ["a common", "j b", "", "unknown", "common c c"]


@pytest.mark.parametrize("removed", [[], [0, 4]])
def test_the_hits_of_a_batch_are_those_of_each_query(removed: list[int]) -> None:
    index = BM25Index(TEXTS)
    index.remove(removed)
    batch = index.search_batch(QUERIES, 4)
    single = [index.search(query, 4) for query in QUERIES]
    assert batch == single
    for hits, expected in zip(batch, single, strict=True):
        assert list(hits) == list(expected)
        assert hits.ids == expected.ids
        assert {type(position) for position in hits.positions} == {int}
        assert {type(score) for score in hits.scores} == {float}


def test_lists_that_were_read_are_the_callers() -> None:
    first, second = BM25Index(TEXTS).search_batch(["a", "b"], 3)
    first.positions.append(99)
    assert first.positions[-1] == 99
    assert 99 not in second.positions
    assert first != second


def test_reranked_hits_keep_their_ids() -> None:
    rows = [{"docno": f"d{number}", "text": text} for number, text in enumerate(TEXTS)]
    hits = BM25Index.from_dataset(rows, ids="docno").search_batch(["a common"], 3)[0]
    best_first = list(hits)
    hits.positions = hits.positions[::-1]
    hits.scores = [3.0, 2.0, 1.0]
    assert list(hits) == [(best_first[2][0], 3.0), (best_first[1][0], 2.0), (best_first[0][0], 1.0)]
    assert hits.ids == [f"d{position}" for position in hits.positions]


def test_one_query_of_a_batch_is_copied_without_the_others() -> None:
    index = BM25Index(TEXTS)
    batch = index.search_batch(QUERIES * 100, 5)
    alone = pickle.dumps(batch[1])
    assert len(alone) == len(pickle.dumps(index.search(QUERIES[1], 5)))
    assert pickle.loads(alone) == copy.deepcopy(batch[1]) == batch[1]


def test_hits_of_no_document() -> None:
    index = BM25Index(TEXTS)
    nothing = np.zeros(len(TEXTS), dtype=bool)
    assert index.search_batch(QUERIES, 3, mask=nothing) == [Hits([], [])] * len(QUERIES)
    assert index.search_batch([], 3) == []


def test_a_frame_has_the_ids() -> None:
    rows = [{"docno": f"d{number}", "text": text} for number, text in enumerate(TEXTS)]
    named = BM25Index.from_dataset(rows, ids="docno").search("a", 2).to_pandas()
    assert named.columns.tolist() == ["rank", "position", "id", "score"]
    assert named["id"].tolist() == ["d0", "d1"]
    unnamed = BM25Index(TEXTS).search("a", 2).to_pandas()
    assert unnamed.columns.tolist() == ["rank", "position", "score"]


def test_hits_are_not_equal_to_other_types_and_have_no_hash() -> None:
    hits = Hits([1], [2.0])
    assert hits != [(1, 2.0)]
    with pytest.raises(TypeError):
        hash(hits)
