"""Our BM25 against rank_bm25 and bm25s: scores, ties and order on random collections and on
ExpertQA's passages.
"""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expertqa_texts import expertqa
from hypothesis import example, given
from hypothesis import strategies as st

from qabench.errors import InputError
from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.tokenizers import words

rank_bm25 = pytest.importorskip("rank_bm25", reason="needs the extra retrieval")
bm25s = pytest.importorskip("bm25s", reason="needs the extra retrieval")

TERMS = st.sampled_from(list("abcdefgh"))
DOCUMENTS = st.lists(st.lists(TERMS, max_size=12), min_size=1, max_size=40).filter(any)
QUERY = st.lists(st.one_of(TERMS, st.just("unknown")), max_size=8)
# b below 1: with 1, rank_bm25 divides 0 by 0 for an empty document.
PARAMETERS = {"k1": st.floats(0.1, 3), "b": st.floats(0, 0.99), "delta": st.floats(0, 2), "epsilon": st.floats(0, 1)}
CLASSES = {"okapi": "BM25Okapi", "bm25+": "BM25Plus", "bm25l": "BM25L"}
K = 10


def indexed(documents: list[list[str]], method: str, **options: Any) -> BM25Index:
    return BM25Index([" ".join(document) for document in documents], method, tokenizer=str.split, **options)


def oracle(documents: list[list[str]], method: str, k1: float, b: float, delta: float, epsilon: float) -> Any:
    own = {"epsilon": epsilon} if method == "okapi" else {"delta": delta}
    return getattr(rank_bm25, CLASSES[method])(documents, k1=k1, b=b, **own)


def ranked(scores: Any) -> list[int]:
    return sorted(range(len(scores)), key=lambda position: (-scores[position], position))


@pytest.mark.parametrize("method", CLASSES)
@given(documents=DOCUMENTS, query=QUERY, k=st.integers(1, 50), data=st.data())
@example(documents=[["a"], [], ["b", "a"]], query=["a", "a", "unknown", "b"], k=9, data=None)
def test_scores_are_rank_bm25s(method: str, documents: list[list[str]], query: list[str], k: int, data: Any) -> None:
    options = {name: data.draw(values, name) if data else 0.5 for name, values in PARAMETERS.items()}
    theirs = oracle(documents, method, **options).get_scores(query)
    index = indexed(documents, method, **options)
    assert index.scores(" ".join(query)).tolist() == theirs.tolist()
    hits = index.search(" ".join(query), k)
    assert hits.positions == ranked(theirs)[:k] and hits.scores == theirs[hits.positions].tolist()


@pytest.mark.parametrize("method", CLASSES)
@given(documents=DOCUMENTS, query=QUERY)
def test_the_backend_rank_bm25_ranks_like_ours(method: str, documents: list[list[str]], query: list[str]) -> None:
    ours, theirs = indexed(documents, method), indexed(documents, method, backend="rank_bm25")
    assert theirs.scores(" ".join(query)).tolist() == ours.scores(" ".join(query)).tolist()
    for mask in (None, [position % 2 == 0 for position in range(len(documents))]):
        expected = ours.search_batch([" ".join(query), "a"], 7, mask=mask)
        assert theirs.search_batch([" ".join(query), "a"], 7, mask=mask) == expected
    assert pickle.loads(pickle.dumps(theirs)).search("a b") == ours.search("a b")


def test_the_backend_rank_bm25_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": text, "kind": len(text)} for text in ("a b", "b", "c c")]
    index = BM25Index.from_dataset(rows, filters="kind", backend="rank_bm25")
    assert index.search("b", where={"kind": 3}).positions == [0, 2]
    monkeypatch.setattr(rank_bm25.BM25Plus, "get_scores", lambda self, query: np.arange(3))
    assert index.search("b").positions == [2, 1, 0]


def test_an_index_with_the_backend_rank_bm25_cannot_change(tmp_path: Path) -> None:
    index = BM25Index(["a", "b"], backend="rank_bm25")
    for change in (
        lambda: index.add(["c"]),
        lambda: index.remove([0]),
        lambda: index.update(["a"]),
        lambda: index.update(["c"]),
        lambda: index.save(tmp_path / "index"),
    ):
        with pytest.raises(InputError, match="with the backend rank_bm25 cannot be changed or saved"):
            change()
    with pytest.raises(InputError, match="rank_bm25 has no method 'lucene'; allowed: okapi, bm25"):
        BM25Index(["a"], "lucene", backend="rank_bm25")
    with pytest.raises(InputError, match="unknown backend 'bm25s'; allowed: qabench, rank_bm25"):
        BM25Index(["a"], backend="bm25s")


@pytest.mark.parametrize("method", ["bm25+", "lucene", "atire", "robertson"])
@given(documents=DOCUMENTS, query=QUERY)
def test_scores_are_bm25s_s(method: str, documents: list[list[str]], query: list[str]) -> None:
    index = indexed(documents, method)
    theirs = bm25s.BM25(method=method, delta=1.0, dtype="float64", backend="numpy")
    theirs.index(documents, show_progress=False)
    query = [term for term in query if term in theirs.vocab_dict]
    scores = theirs.get_scores(query) if query else np.zeros(len(documents))
    np.testing.assert_allclose(index.scores(" ".join(query)), scores, rtol=1e-12, atol=1e-12)


def test_more_terms_than_16_bits() -> None:
    drawn = np.random.default_rng(0).permutation(140_000).reshape(700, -1) % 70_000
    documents = [[f"t{term}" for term in row] for row in drawn.tolist()]
    theirs = rank_bm25.BM25Okapi(documents)
    index = indexed(documents, "okapi")
    for document in documents[::70]:
        assert index.scores(" ".join(document)).tolist() == theirs.get_scores(document).tolist()


def compare(texts: Sequence[str], queries: Sequence[str]) -> int:
    """Compares all scores, and the order of the best with ties by position; returns the number of
    scores.
    """
    compared = 0
    tokens = [words(text) for text in texts]
    for method, name in CLASSES.items():
        theirs = getattr(rank_bm25, name)(tokens)
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


@pytest.mark.parametrize("count", [25, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("with_numba")
def test_questions_of_expertqa_over_its_passages(mirror: Path, count: int | None) -> None:
    texts, questions = expertqa(mirror)
    assert len(texts) > 4096  # pruned if the terms have more than 10,000 postings
    assert compare(texts, questions[:count]) == 3 * len(texts) * len(questions[:count])
