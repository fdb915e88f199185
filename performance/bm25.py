"""BM25 over passages: indexing, one query, a batch; qabench, rank_bm25, rank_bm25_rs, bm25s, tantivy, SQLite FTS5.

Passages are ExpertQA's sentences in seeded random order (``QABENCH_MIRROR``) or, without it, seeded words of a Zipf
distribution: about 60 MB for 100,000. Queries are ExpertQA's questions, or words drawn like those of passages. Engines
that take tokens get those of qabench; making them is part of indexing, for all engines. An engine indexes in a process
of its own, which measures its peak memory in addition to the passages. Engines with the same formula must find the same
k scores (to 1e-6) and the same documents above the last tie. Engines that are not installed are left out.
"""

from __future__ import annotations

import functools
import importlib.util
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from bm25_engines import ENGINES
from bm25_passages import corpus
from cases import Case, Measured, timed

from qabench.retrieval.bm25 import ranking

SIZES = (1_000, 10_000, 100_000, 1_000_000)
K = 10
QUERIES = 100
BATCH = 2_000
SLOW_QUERIES = 5  # for engines that take up to a second per query
SLOW_UP_TO = 100_000  # passages; with more, these engines are left out
# Ours -> the engines to compare with.
RIVALS = {
    "qabench okapi": ("rank_bm25", "rank_bm25_rs"),
    "qabench bm25+": ("bm25s numpy, bm25+", "bm25s numba, bm25+"),
    "qabench lucene": ("bm25s numpy, lucene", "bm25s numba, lucene", "tantivy", "SQLite FTS5"),
}


def cases(size: int | None) -> Iterator[Case]:
    source = "expertqa" if os.environ.get("QABENCH_MIRROR") else "zipf"
    texts, queries = corpus(source, size or 100_000, QUERIES)

    @functools.cache
    def engine(name: str) -> tuple[Any, list[Any]]:
        made = ENGINES[name]()
        made.index(made.tokens(texts))
        return made, [made.query(text) for text in queries]

    def one_query(name: str) -> Measured:
        made, prepared = engine(name)
        asked = prepared[:SLOW_QUERIES] if made.slow else prepared
        result = timed(lambda: [made.search(query, K) for query in asked])
        return Measured(result.seconds / len(asked), result.output)

    def batch(name: str) -> Measured:
        made, prepared = engine(name)
        many = prepared * (BATCH // len(prepared))
        result = timed(lambda: made.batch(many, K))
        return Measured(result.seconds / len(many))

    names = {ours: [name for name in rivals if usable(name, len(texts))] for ours, rivals in RIVALS.items()}
    for ours, rivals in names.items():
        search = functools.partial(one_query, ours)
        comparable = {name: functools.partial(one_query, name) for name in rivals if ENGINES[name].method}
        others = {name: functools.partial(one_query, name) for name in rivals if not ENGINES[name].method}
        yield Case(f"one query, {ours}", search, comparable, equal)
        yield Case(f"one query, {ours} without numba", without_numba(search), comparable, equal)
        if others:
            yield Case(f"one query, {ours}; other formulas", search, others, None)
    fast = {name: functools.partial(batch, name) for name in names["qabench bm25+"]}
    yield Case(f"a query of a batch of {BATCH:,}, bm25+", functools.partial(batch, "qabench bm25+"), fast, None)
    rivals = [name for of in names.values() for name in of if "numba" not in name and "lucene" not in name]
    index = {name: functools.partial(indexed, name, texts) for name in rivals}
    yield Case("indexing, bm25+", functools.partial(indexed, "qabench bm25+", texts), index, None, warm=False)


def usable(name: str, passages: int) -> bool:
    """Whether an engine is installed, and fast enough for the passages."""
    package = ENGINES[name].package
    return (not package or importlib.util.find_spec(package) is not None) and (
        not ENGINES[name].slow or passages <= SLOW_UP_TO
    )


def without_numba(search: Callable[[], Measured]) -> Callable[[], Measured]:
    """The search as it is if numba is not installed."""

    def run() -> Measured:
        kernel, ranking._kernel = ranking._kernel, lambda: None  # type: ignore[assignment]
        try:
            return search()
        finally:
            ranking._kernel = kernel

    return run


def equal(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Whether the scores are the same, rank by rank, and the documents above the last tie."""
    for (positions, scores), (other_positions, other_scores) in zip(ours, theirs, strict=False):
        last = min(scores) * (1 + 1e-6)
        above = {position for position, score in zip(positions, scores, strict=True) if score > last}
        if not np.allclose(scores, other_scores, rtol=1e-6, atol=0) or not above <= set(other_positions):
            return False
    return True


def indexed(name: str, texts: list[str]) -> Measured:
    """The time and the peak of memory of indexing, in a process that is forked so that it shares the passages."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_index, args=(name, texts, sender))
    process.start()
    sender.close()
    seconds, megabytes = receiver.recv()
    process.join()
    return Measured(seconds, note=f"{megabytes:,.0f} MB")


def _index(name: str, texts: list[str], pipe: Any) -> None:
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1]) * resource.getpagesize() / 2**20
    engine = ENGINES[name]()
    start = time.perf_counter()
    engine.index(engine.tokens(texts))
    seconds = time.perf_counter() - start
    pipe.send((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before))
