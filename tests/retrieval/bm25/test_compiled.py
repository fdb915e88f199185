"""The compiled search: the ranking and the scores of scoring all documents, to the last bit.

Each kind of collection makes other bounds decide. A change of a sign, or a bound that is too tight,
fails here.
"""

import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.formulas import METHODS
from qabench.retrieval.bm25.search import Postings, Search, top

pytestmark = [pytest.mark.usefixtures("with_numba"), pytest.mark.xdist_group("numba")]

SIZE = 12_000  # documents: pruned
SIMILAR = [pytest.param(name, marks=pytest.mark.slow) for name in METHODS if name not in ("okapi", "bm25+")]
Case = tuple[list[str], list[str]]  # texts and queries


def joined(terms: Any) -> str:
    return " ".join(f"t{term}" for term in terms)


def zipf(generator: np.random.Generator, size: int = SIZE) -> Case:
    """Rare and frequent terms, as in natural texts."""
    shares = 1 / np.arange(1, 3001)
    drawn = generator.choice(3000, (size, 24), p=shares / shares.sum())
    texts = [joined(row[: number % 25]) for number, row in enumerate(drawn)]
    return texts, [joined(row[: generator.integers(0, 20)]) for row in generator.choice(3300, (60, 20))] + [
        joined(generator.choice(3000, generator.integers(1, 16), p=shares / shares.sum())) for _ in range(120)
    ]


def frequent(generator: np.random.Generator) -> Case:
    """Terms in at least one of 32 documents, more than get bytes: their bytes decide."""
    texts = [joined(generator.integers(0, 300, 40) // generator.integers(1, 9)) for _ in range(SIZE)]
    return texts, [joined(generator.integers(0, 300, generator.integers(1, 14))) for _ in range(150)]


def near_ties(generator: np.random.Generator) -> Case:
    """Terms in equally many documents, once in each: the scores of many documents differ in the
    last bits only.
    """
    groups = generator.permutation(SIZE * 6).reshape(-1, 180) % SIZE
    texts: list[list[int]] = [[] for _ in range(SIZE)]
    for term, documents in enumerate(groups):
        for document in dict.fromkeys(documents.tolist()):
            texts[document].append(term)
    extra = [[1000 + number % 7] * int(generator.integers(0, 3)) for number in range(SIZE)]
    queries = []
    for _ in range(150):
        terms = generator.choice(len(groups), 60, replace=False)
        queries.append(joined(generator.permutation(np.repeat(terms, generator.integers(1, 4, 60)))))
    return [joined([*terms, *more]) for terms, more in zip(texts, extra, strict=True)], queries


def coarse(generator: np.random.Generator, size: int = 40_000) -> Case:
    """Rare terms of up to 1,250 documents, and frequent terms with a few outliers, whose bytes say
    little.

    Terms that a query repeats outweigh the frequent ones, so that reading stops before all rare
    terms are read.
    """
    rare = generator.choice(60, size, p=np.linspace(1, 3, 60) / 120)
    texts = []
    for number in range(size):
        terms = np.repeat([f"r{rare[number]}", f"r{generator.integers(60)}"], generator.integers(0, 4, 2)).tolist()
        terms += np.repeat([f"f{term}" for term in range(8)], generator.integers(0, 3, 8)).tolist()
        texts.append(" ".join(terms) + (f" f{number % 8}" * 120 if number % 5000 < 8 else ""))
    queries = []
    for _ in range(200):
        terms = [f"r{term}" for term in generator.choice(60, 4, replace=False)]
        terms = np.repeat(terms, generator.choice([1, 1, 2, 9, 60], 4)).tolist()
        terms += [f"f{term}" for term in generator.choice(8, generator.integers(0, 6), replace=False)]
        queries.append(" ".join(generator.permutation(terms)))
    return texts, queries


CASES = {"zipf": zipf, "frequent": frequent, "near_ties": near_ties, "coarse": coarse}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "near_ties": [{}, {"b": 1e-9, "k1": 0.9}],
    "coarse": [{"k1": 30, "b": 0.01}],
}


def check(index: BM25Index, queries: list[str], generator: np.random.Generator, mask: Any = None) -> None:
    """Compare searches, one by one and as a batch, with the scores of all documents."""
    allowed = np.arange(len(index)) if mask is None else np.flatnonzero(mask)
    k = int(generator.integers(1, 30))
    batch = index.search_batch(queries, k, mask=mask)
    for query, hits in zip(queries, batch, strict=True):
        scores = index.scores(query)
        best = allowed[np.lexsort((allowed, -scores[allowed]))][:k]
        assert hits.positions == best.tolist() and hits.scores == scores[best].tolist()
        assert index.search(query, k, mask=mask) == hits
    scorer = index._scorer
    assert type(scorer._search) is not Search
    in_numpy = Search(scorer.postings)
    for query, hits in zip(queries, batch, strict=True):
        numbers = [scorer.vocabulary[term] for term in query.split() if term in scorer.vocabulary]
        assert in_numpy.top(numbers, min(k, len(allowed)), mask) == (hits.positions, hits.scores)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", ["okapi", "bm25+", *SIMILAR])
def test_equal_to_scoring_all_documents(method: str, case: str) -> None:
    generator = np.random.default_rng(sum(map(ord, method)))
    texts, queries = CASES[case](generator)
    for options in OPTIONS.get(case, [{}]):
        index = BM25Index(texts, method, **options)
        check(index, queries, generator)
        check(index, queries[:40], generator, generator.random(len(texts)) < 0.5)  # pruned
        check(index, queries[:40], generator, generator.random(len(texts)) < 0.05)  # few: scored


@pytest.mark.parametrize("size", [1, 9, 300, 4096, 4097, 9000])
@pytest.mark.parametrize("method", ["okapi", "bm25+"])
def test_small_collections(method: str, size: int) -> None:
    generator = np.random.default_rng(size)
    texts, queries = zipf(generator, size)
    index = BM25Index([*texts, "t0"], method)
    index.search_batch(["t0"] * 501)  # many queries, so that numba is worth importing
    check(index, queries, generator)
    check(index, queries[:40], generator, generator.random(size + 1) < 0.5)


def special() -> Iterator[tuple[dict[str, Any], str]]:
    yield {"delta": 1e14}, "t5 t9 t1 t0 t0"  # rounding errors are larger than the unit
    yield {"method": "okapi", "epsilon": -0.5}, "t0 t1 t900"  # terms that lower scores
    yield {}, joined(range(300))  # more terms than are pruned
    yield {}, "t2999"  # fewer documents than k
    yield {"method": "okapi", "epsilon": 0.0}, "t0 t1"
    yield {"k1": 0.0, "delta": 0.0}, "t0 t800 t40"


def test_special_queries() -> None:
    generator = np.random.default_rng(0)
    texts, queries = zipf(generator)
    for options, query in special():
        check(BM25Index(texts, **options), [query, *queries[:20]], generator)


def searches(postings: Postings) -> list[Search]:
    from qabench.retrieval.bm25.compiled import CompiledSearch

    return [Search(postings), CompiledSearch(postings)]


@pytest.mark.parametrize("rare", [False, True])
def test_the_bound_of_candidates(rare: bool) -> None:
    """The best document has the lowest total that it can have, next to documents with the highest."""
    n, size, k = 5, 12_000, 10
    others = np.arange(n, n + 400 if rare else size, 3)  # enough for a frequent term, or not
    units = [(99.98, [1]), (254.0, [0]), (100.02, range(2, k + 2)), (20.5, others[others > k + 2])]
    weights = np.zeros(size)
    for value, documents in units:
        weights[list(documents)] = value
    documents = np.flatnonzero(weights).astype(np.int32)
    terms = np.tile(weights[documents], (n, 1))
    terms[1:, 0] = 0  # only the first term has the highest gain, which sets the unit
    terms[0, 1] += 1
    if rare:
        terms[0, 0] = 1024
    starts = np.arange(n + 1) * len(documents)
    postings = Postings(starts, np.tile(documents, n), terms.ravel(), np.zeros(n), terms.max(axis=1), size)
    for search in searches(postings):
        hits = search.top(list(range(n)), k, None)
        assert hits == top(search.scores(range(n)), k) and 1 in hits[0]


def test_a_gain_below_the_unit() -> None:
    size = 3000
    weights = np.concatenate([np.random.default_rng(0).integers(1, 254, size), np.full(size, 0.25)])
    documents = np.tile(np.arange(size, dtype=np.int32), 2)
    postings = Postings(np.arange(3) * size, documents, weights, np.zeros(2), np.array([254.0, 0.25]), size)
    for search in searches(postings):
        assert search.top([0, 1], 3, None) == top(search.scores([0, 1]), 3)


# the second only with the 1 of each term
@pytest.mark.parametrize(("terms", "last"), [(80, 1.0), (64, 0.99)])
def test_totals_beyond_16_bits(terms: int, last: float) -> None:
    highest = np.append(np.ones(terms - 1), last)
    documents = np.tile(np.arange(7, 10, dtype=np.int32), terms)
    weights = np.where(documents == 7, np.repeat(highest, 3), 0.25)
    postings = Postings(np.arange(terms + 1) * 3, documents, weights, np.zeros(terms), highest, 12_000)
    for search in searches(postings):
        assert search.top(list(range(terms)), 1, None) == ([7], [terms - 1 + last])


@pytest.mark.parametrize("excess", [0, 6, 12])
def test_rounding_errors(excess: int) -> None:
    """Sums of large addends: the errors of 10 additions decide between documents whose gains differ
    by less.

    With ``excess`` 0, the errors are just below what the bounds allow. Each addition of 1 doubles
    the addends.
    """
    generator = np.random.default_rng(excess)
    n, size, k = 10, 3000, 4
    documents = np.tile(np.arange(size, dtype=np.int32), n)
    for _ in range(40):
        base = 2.0 ** (43 + excess) * (1 + generator.random(n) * 0.99)
        gains = np.ones((n, size)) * generator.integers(0, 60, n)[:, None]
        near = generator.permutation(size - 1)[: k + 90]  # few enough to be scored
        others = near[k:]
        # of the same sum: the errors differ
        shifts = generator.integers(-9, 10, (n // 2, len(near)))
        gains[:, near] = generator.integers(100, 200, n)[:, None] + np.concatenate((shifts, -shifts))
        gains[:, others] -= np.spacing(base.max())  # rounded down to the next unit
        gains[0, others] -= excess > 0
        gains[0, size - 1] = 254  # makes the unit 1
        weights = base[:, None] + gains
        highest = (weights - base[:, None]).max(axis=1)
        postings = Postings(np.arange(n + 1) * size, documents, weights.ravel(), base, highest, size)
        for search in searches(postings):
            assert search.top(list(range(n)), k, None) == top(search.scores(range(n)), k)


def test_threads_and_processes_share_an_index() -> None:
    texts, queries = zipf(np.random.default_rng(1))
    index = BM25Index(texts)
    expected = [index.search(query, 5) for query in queries]
    copy = pickle.loads(pickle.dumps(index))
    with ThreadPoolExecutor(8) as executor:  # which compute the bytes of frequent terms at once
        assert list(executor.map(lambda query: copy.search(query, 5), queries)) == expected
    for _ in range(30):  # the words of later batches are found by compiled code
        assert index.search_batch(queries, 5) == expected
    assert index._scorer._table is not None
    added = [f"{query} new" for query in queries[:9]]
    index.add(added)
    assert index.search_batch(added, 5) == [index.search(query, 5) for query in added]


@pytest.mark.parametrize("method", METHODS)
def test_rare_words_cost_their_postings(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries without a frequent term: ties, repeated terms, padding and masks, and memory that is
    put back.
    """
    generator = np.random.default_rng(5)
    size = 9000
    texts = [joined([*generator.integers(10, 4000, 3), *generator.integers(4000, 4040, 1), 0]) for _ in range(size)]
    texts[7] = ""
    index = BM25Index(texts, method)
    queries = [joined(generator.integers(10, 4000, generator.integers(1, 6))) for _ in range(60)]
    queries += [f"t4001 t4001 t{number} t4002" for number in range(20, 60)] + ["", "unknown", "t99 t99 t99"]
    check(index, queries, generator)
    check(index, queries, generator, generator.random(size) < 0.5)
    check(index, queries, generator, generator.random(size) < 0.002)  # fewer documents than k
    search: Any = index._scorer._search
    ((memory, _),) = search._free[:1]
    assert len(memory) == 2 * size and not memory.view(np.int32)[2 * size : 3 * size].any()

    # Arrays of this many documents are not made again.
    monkeypatch.setattr(search, "scores", None)
    monkeypatch.setattr(np, "zeros", None)
    index.search("t20 t30", 5)


def test_numba_is_imported_for_the_work_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numba")
    index = BM25Index([f"t{number % 7} t{number}" for number in range(9000)])
    index.search_batch(["t1 t20"] * 10, 3)
    assert type(index._scorer._search) is Search
    index.search_batch(["t1 t20"] * 300, 3)
    assert type(index._scorer._search) is not Search
