"""BM25Index: input, results and errors."""

import math
from typing import Any

import pytest

from qabench.errors import InputError
from qabench.retrieval import BM25Index

TEXTS = ["The cat sat on the mat.", "A dog ran.", "Cats and a dog", "", "the the the"]


def test_ties_come_by_position() -> None:
    index = BM25Index(["x y"] * 9000 + ["z"])
    assert index.search("x", 5).positions == [0, 1, 2, 3, 4]
    assert index.search("x", 5, mask=[False, True] * 4500 + [True]).positions == [1, 3, 5, 7, 9]
    assert index.search("z", 3).positions == [9000, 0, 1]
    assert len(set(index.search("y x", 9001).scores[:-1])) == 1


def test_a_mask_restricts_results_without_changing_scores() -> None:
    index = BM25Index(TEXTS)
    hits = index.search("dog", 5, mask=[True, False, True, True, False])
    assert hits.positions == [2, 0, 3] and hits.scores == index.scores("dog")[[2, 0, 3]].tolist()
    assert index.search("dog", 5, mask=[False] * 5).positions == []
    for other in ([True], [0, 1, 2, 3, 4], [[True] * 5]):
        with pytest.raises(InputError, match="expected 5 booleans"):
            index.search("dog", mask=other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bm26"}, "unknown BM25 method 'bm26' .*; allowed: bm25\\+, okapi"),
        ({"k1": -1}, "k1 is -1, b .* k1 and delta must be at least 0"),
        ({"k1": math.nan}, "k1 is nan"),
        ({"b": 1.5}, "b is 1.5, .* b from 0 to 1"),
        ({"delta": -0.5}, "delta is -0.5"),
        ({"epsilon": math.inf}, "epsilon is inf"),
        ({"tokenizer": lambda text: [1]}, "returned 1 as a term"),
        ({"method": "lucene", "backend": "rank_bm25"}, "the backend is 'rank_bm25'; allowed: .* okapi, bm25\\+, bm25l"),
    ],
)
def test_wrong_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BM25Index(TEXTS, **options)


def test_nothing_to_index_is_an_error() -> None:
    with pytest.raises(InputError, match="nothing to index: 0 documents"):
        BM25Index([])
    with pytest.raises(InputError, match="nothing to index: 2 documents without a single term"):
        BM25Index(["", "..."])


def test_other_types_than_strings_are_rejected() -> None:
    with pytest.raises(InputError, match="document 1 is None; expected a string"):
        BM25Index(["a", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="put it in a list"):
        BM25Index("a text")
    index = BM25Index(TEXTS)
    with pytest.raises(InputError, match="k is 0; it must be at least 1"):
        index.search("dog", 0)
    with pytest.raises(InputError, match="expected a string"):
        index.search(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="put it in a list"):
        index.search_batch("dog")


@pytest.mark.parametrize(
    ("method", "a_in_first", "a_in_second", "b_in_second"),
    [
        ("lucene", math.log(8 / 3) * 4 / 9, 0, math.log(1.6) * 0.4),
        ("robertson", math.log(5 / 3) * 4 / 9, 0, 0),  # b is in more than half of the documents
        ("atire", math.log(3) * 4 / 3, 0, math.log(1.5) * 1.2),
        ("bm25l", math.log(8 / 3) * 12.6 / 4.1, 0, math.log(1.6) * 33 / 23),
        ("bm25+", math.log(4) * 7 / 3, math.log(4), math.log(2) * 2.2),
        ("okapi", math.log(5 / 3) * 4 / 3, 0, math.log(5 / 3) / 12 * 1.2),  # 1/4 of the mean idf, ln(5/3) / 3
    ],
)
def test_scores_computed_by_hand(method: str, a_in_first: float, a_in_second: float, b_in_second: float) -> None:
    # With k1 = 2 and b = 0.5, the relative lengths are 1.25, 0.75 and 1.
    index = BM25Index(["a a b", "b", "c c"], method, k1=2, b=0.5)
    scores = [*index.scores("a")[:2], index.scores("b")[1]]
    assert scores == pytest.approx([a_in_first, a_in_second, b_in_second], rel=1e-12)


def test_extreme_parameters_stay_finite() -> None:
    for method in ("bm25+", "okapi", "bm25l", "lucene", "atire", "robertson"):
        for k1, b in ((0, 0), (0, 1), (1.5, 1)):
            scores = BM25Index(TEXTS, method, k1=k1, b=b, delta=0).scores("the cat dog")
            assert all(map(math.isfinite, scores)), (method, k1, b)
