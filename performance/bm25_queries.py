"""BM25 by kind of query: natural, rare, frequent and mixed words.

qabench is compared with bm25s, rank_bm25_rs and tantivy.

    python performance/bm25_queries.py [--sizes 100 1000 20000] [--rounds 5] [--methods bm25l robertson]

Passages and natural queries are those of bm25.py without real data (``zipf``): seeded words of a
Zipf distribution, 60 to 139 a passage, 6 to 19 a query. A rare query is five words of at most three
passages each, a frequent one five of the hundred most frequent words, and a mixed one is two rare
words and one of the hundred. Times are CPU time of one core per query (top 10), the shortest of all
rounds, in which the engines take turns, so that other work on the machine slows all of them. Small
collections have six times as many rounds. Above 100,000 passages, batches and rounds are fewer. The
times of qabench include the tokenization of queries, which the others get as tokens. A batch
returns arrays, a single search returns lists.

Engines with the same formula must find the same scores (to 1e-5, bm25s has 32 bits). tantivy has
its own formula, and is shown next to "lucene". Above 100,000 passages, bm25s gets the postings and
weights of qabench, because its own indexing takes minutes for each method. bm25s has no okapi, and its bm25l is another
formula. rank_bm25_rs has no batches, and needs the words of all passages as Python strings, so it
is left out of 1,000,000 passages. A run that is interrupted goes on with the method where it
stopped.
"""

from __future__ import annotations

import argparse
import copy
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from bm25_engines import ENGINES, Engine, Tantivy
from bm25_passages import corpus
from cases import Unfinished

from qabench.io.tables import Table
from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.building import InvertedScorer
from qabench.retrieval.bm25.formulas import METHODS, Parameters
from qabench.retrieval.bm25.tokenizers import tokenize, words

SIZES = (100, 1_000, 20_000, 100_000, 1_000_000)
SHOWN_METHODS = ("bm25+", "okapi", "bm25l", "lucene", "atire", "robertson")
K = 10
QUERIES = 200
BATCH = 2_000
BATCH_IF_LARGE = 200
LARGE = 100_000  # passages. Above, a round of the others takes a minute
# passages. Above, the tokens of all passages as Python strings, which it needs, take too much memory
LARGEST_FOR_RANK_BM25_RS = 100_000
SMALL = 20_000  # passages. Up to here, a round takes milliseconds
ROUNDS_IF_SMALL = 6
ROUNDS_IF_LARGE = 2
ROUNDS_IF_SLOW = 2
IN_BM25S = ("lucene", "robertson", "atire", "bm25+")
IN_RANK_BM25_RS = {"okapi": "BM25Okapi", "bm25l": "BM25L", "bm25+": "BM25Plus"}


class Ours(Engine):
    """qabench, with the compiled search.

    Args:
        method: the method.
        index: an index of the passages by okapi, whose counts are those of all methods.
    """

    def __init__(self, method: str, index: BM25Index) -> None:
        parameters = Parameters.of(method, 1.5, 0.75, None)
        self.engine = copy.copy(index)
        self.engine.parameters = parameters
        self.engine._scorer = InvertedScorer(index._scorer.counts, parameters)

    def query(self, text: str) -> Any:
        return text

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        hits = self.engine.search(query, k)
        return hits.positions, hits.scores

    def batch(self, queries: Sequence[Any], k: int) -> None:
        self.engine.search_batch(queries, k)


class Bm25s(Engine):
    """bm25s, with numba."""

    def __init__(self, method: str, tokens: Any) -> None:
        import bm25s

        self.engine = bm25s.BM25(method=method, delta=1.0, backend="numba")
        self.engine.index(tokens, show_progress=False)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        positions, scores = self.engine.retrieve([query], k=k, show_progress=False, n_threads=0)
        return positions[0].tolist(), scores[0].tolist()

    def batch(self, queries: Sequence[Any], k: int) -> None:
        self.engine.retrieve(list(queries), k=k, show_progress=False, n_threads=1)


class Bm25sOfPostings(Bm25s):
    """bm25s, with numba. Its arrays are made of those of qabench, in a hundredth of the time.

    The passages are too many for its own indexing, which takes minutes for each method. It searches
    the same arrays, and finds the same scores.
    """

    def __init__(self, method: str, ours: Ours) -> None:
        import bm25s

        self.engine = bm25s.BM25(method=method, delta=1.0, backend="numba")
        scorer = ours.engine._scorer
        postings = scorer.postings
        frequencies = np.diff(postings.starts)
        assert postings.compute is not None
        postings.compute(np.arange(len(frequencies)))
        gains = (postings.weights - np.repeat(postings.base, frequencies)).astype(np.float32)
        self.engine.scores = {
            "data": gains,
            "indices": postings.documents,
            "indptr": postings.starts.astype(np.int32),
            "num_docs": postings.size,
        }
        self.engine.vocab_dict = scorer.vocabulary
        self.engine.unique_token_ids_set = set(scorer.vocabulary.values())
        self.engine.nonoccurrence_array = None
        if postings.base.any():
            self.engine.nonoccurrence_array = postings.base.astype(np.float32)


class RankBm25Rs(Engine):
    """rank_bm25_rs. It has no batches."""

    def __init__(self, method: str, tokens: Sequence[Sequence[str]]) -> None:
        import rank_bm25_rs

        self.engine = getattr(rank_bm25_rs, IN_RANK_BM25_RS[method])(tokens)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        scores = np.asarray(self.engine.get_scores(query))
        best = np.argsort(-scores, kind="stable")[:k]
        return best.tolist(), scores[best].tolist()


def queries_by_kind(index: BM25Index, natural: Sequence[str]) -> dict[str, list[str]]:
    """Return seeded queries of each kind."""
    generator = np.random.default_rng(1)
    counts = index._scorer.counts
    frequencies = dict(zip(counts.vocabulary, np.diff(counts.starts).tolist(), strict=True))
    rare = sorted(word for word, frequency in frequencies.items() if frequency <= 3)
    frequent = sorted(frequencies, key=frequencies.__getitem__, reverse=True)[:100]

    def drawn(count: int, vocabulary: list[str]) -> list[str]:
        return [vocabulary[place] for place in generator.integers(0, len(vocabulary), count)]

    return {
        "natural": list(natural),
        "rare": [" ".join(drawn(5, rare)) for _ in range(QUERIES)],
        "frequent": [" ".join(drawn(5, frequent)) for _ in range(QUERIES)],
        "mixed": [" ".join([*drawn(2, rare), *drawn(1, frequent)]) for _ in range(QUERIES)],
    }


def measured(
    size: int, rounds: int, methods: Sequence[str], unfinished: Unfinished
) -> list[list[Any]]:
    """Return the rows of the table for one number of passages: part, method, engine, microseconds."""
    rows: list[list[Any]] = []
    if size <= SMALL:
        rounds *= ROUNDS_IF_SMALL
    if size > LARGE:
        rounds = min(rounds, ROUNDS_IF_LARGE)
    passages = Passages(size)
    for method in methods:
        measure = partial(measured_method, passages, method, rounds)
        rows += unfinished.get(f"{size} {method}", measure)
        print(f"{size:,} passages, {method}", file=sys.stderr, flush=True)
    return rows


class Passages:
    """Passages and queries, made when they are first used.

    Attributes:
        size: the number of passages.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    @cached_property
    def _corpus(self) -> tuple[list[str], list[str]]:
        return corpus("zipf", self.size, QUERIES)

    @property
    def texts(self) -> list[str]:
        """The passages."""
        return self._corpus[0]

    @cached_property
    def index(self) -> BM25Index:
        """The index by okapi."""
        return BM25Index(self.texts, "okapi")

    @cached_property
    def queries(self) -> dict[str, list[str]]:
        """The queries of each kind."""
        return queries_by_kind(self.index, self._corpus[1])

    @cached_property
    def strings(self) -> list[list[str]]:
        """The words of each passage."""
        return tokenize(words, self.texts)

    @cached_property
    def numbers(self) -> Any:
        """The words of each passage as numbers, as bm25s tokenizes them."""
        import bm25s

        return bm25s.tokenize(self.texts, token_pattern=r"\w+", stopwords=None, show_progress=False)


def measured_method(passages: Passages, method: str, rounds: int) -> list[list[Any]]:
    """Return the rows of the table for one method."""
    size = passages.size
    ours = Ours(method, passages.index)
    engines: dict[str, Engine] = {"qabench": ours}
    if method in IN_BM25S:
        engines["bm25s"] = (
            Bm25sOfPostings(method, ours) if size > LARGE else Bm25s(method, passages.numbers)
        )
    if method in IN_RANK_BM25_RS and size <= LARGEST_FOR_RANK_BM25_RS:
        engines["rank_bm25_rs"] = RankBm25Rs(method, passages.strings)
    if method == "lucene" and Tantivy.package in installed():
        engines["tantivy"] = ENGINES["tantivy"]()
        engines["tantivy"].index(passages.texts)
    rounds_by_engine = dict.fromkeys(engines, rounds)
    if size > SMALL:
        rounds_by_engine["rank_bm25_rs"] = ROUNDS_IF_SLOW
    batch_size = BATCH_IF_LARGE if size > LARGE else BATCH
    rows = []
    for kind, queries in passages.queries.items():
        for part, name, value in compared(engines, queries, rounds_by_engine, batch_size):
            rows.append([f"{kind}, {method}", size, part, name, value])
    engines.clear()
    gc.collect()
    return rows


def compared(
    engines: dict[str, Engine], queries: Sequence[str], rounds: Mapping[str, int], batch_size: int
) -> list[tuple[str, str, float]]:
    """Return part, engine and microseconds per query.

    Raises:
        SystemExit: engines find different scores.
    """
    prepared = {name: [engine.query(text) for text in queries] for name, engine in engines.items()}
    found = {
        name: [engine.search(query, K)[1] for query in prepared[name]]
        for name, engine in engines.items()
        if name != "tantivy"
    }
    for name, scores in found.items():
        if not np.allclose(scores, found["qabench"], rtol=1e-5, atol=1e-5):
            raise SystemExit(f"the scores of {name} differ from those of qabench")
    best: dict[tuple[str, str], float] = {}
    for number in range(max(rounds.values())):
        for name, engine in engines.items():
            if number >= rounds[name]:
                continue
            parts: dict[str, Callable[[], Any]] = {
                "one by one": lambda name=name, engine=engine: [
                    engine.search(query, K) for query in prepared[name]
                ]
            }
            if name in ("qabench", "bm25s"):
                parts["batch"] = lambda name=name, engine=engine: engine.batch(
                    prepared[name] * (batch_size // len(queries)), K
                )
            for part, call in parts.items():
                count = batch_size if part == "batch" else len(queries)
                start = time.process_time()
                call()
                microseconds = (time.process_time() - start) / count * 1e6
                best[part, name] = min(best.get((part, name), np.inf), microseconds)
    return [(part, name, value) for (part, name), value in best.items()]


def installed() -> set[str]:
    """Return which of the packages are installed."""
    from importlib.util import find_spec

    return {name for name in ("tantivy",) if find_spec(name)}


def table(
    largest: int, rounds: int, sizes: Sequence[int] = SIZES, methods: Sequence[str] = SHOWN_METHODS
) -> Table:
    """Return the times of all engines in microseconds, with ratios to qabench."""
    sizes = [size for size in sizes if size <= largest]
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    unfinished = Unfinished("bm25_queries")
    times: dict[tuple[str, str, str], dict[int, float]] = {}
    for size in sizes:
        for query, passages, part, engine, value in measured(size, rounds, methods, unfinished):
            times.setdefault((query, part, engine), {})[passages] = value
    rows = []
    for (query, part, engine), by_size in sorted(times.items()):
        ours = times[query, part, "qabench"]
        cells = []
        for size in sizes:
            cell = ""
            if size in by_size:
                cell = f"{by_size[size]:,.1f}"
                if engine != "qabench":
                    cell = f"{by_size[size] / ours[size]:.3g}x, {cell}"
            cells.append(cell)
        rows.append([f"{query}, {part}: {engine}", *cells])
    unfinished.finish()
    title = "CPU time of one core per query in µs, by number of passages; ratios to qabench"
    return Table(title, ["", *(f"{size:,}" for size in sizes)], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=SHOWN_METHODS)
    options = parser.parse_args()
    results = table(max(options.sizes), options.rounds, options.sizes, options.methods)
    sys.stdout.write(results.text() + "\n")
