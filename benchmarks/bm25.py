"""BM25 over passages: qabench beside rank_bm25, bm25s, rank_bm25_rs, tantivy and SQLite FTS5, rankings compared.

    pip install "qabench[retrieval]" rank-bm25-rs tantivy    # and numba, for bm25s's fast path
    python benchmarks/bm25.py [--passages 100000] [--queries 200] [--source expertqa|zipf] [--only NAME ...]

Passages are ExpertQA's sentences in seeded random order (``QABENCH_MIRROR``) or, without it, seeded words of a Zipf
distribution: about 60 MB for 100,000. Queries are ExpertQA's questions, or words drawn like the passages'. Those that
take tokens get ours, and "tokens s" is what making them takes; qabench, tantivy and FTS5 tokenize inside "index s".
Each engine runs in a process of its own; "peak MB" is what it needs beyond the texts, tokens included. A query is one
call for k documents. The ratio is to rank_bm25 on the same queries. At the end, rankings are compared: the k scores
with those of qabench's index of the same formula (tantivy's and FTS5's are others), and the documents above the last
tie.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import re
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from qabench.retrieval import BM25Index
from qabench.retrieval.tokenizers import tokenize, words

SLOW_QUERIES = 10  # of an engine that takes half a second for each
EXPERTQA = ("rand_test.jsonl", "rand_val.jsonl")


def expertqa_sentences(root: Path) -> tuple[list[str], list[str]]:
    """Sentences of answers and evidence, and the questions."""
    passages: dict[str, None] = {}
    questions = []
    for name in EXPERTQA:
        with (root / "chaitanyamalaviya/ExpertQA/data/lfqa" / name).open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                questions.append(row["question"])
                for answer in row["answers"].values():
                    passages[answer["answer_string"]] = None
                    for claim in answer.get("claims") or ():
                        evidence = claim.get("evidence") or ()
                        passages |= dict.fromkeys([evidence] if isinstance(evidence, str) else evidence)
    found = [part for text in passages for part in re.split(r"(?<=[.!?\n])\s+", text) if 30 < len(part) < 600]
    return found, questions


def zipf_words(generator: np.random.Generator, count: int, vocabulary: int = 200_000) -> list[str]:
    """Words of two to ten letters, the n-th most frequent about n times rarer than the first."""
    shares = np.cumsum(1 / np.arange(1, vocabulary + 1))
    ranks = 1 + np.searchsorted(shares, generator.random(count) * shares[-1])
    letters = "etaoinshrdlcumwfgypbvk"
    spelled: dict[int, str] = {}
    for rank in map(int, np.unique(ranks)):
        number, word = rank * 2654435761 % 2**32 + rank, ""
        for _ in range(2 + rank % 9 if rank > 100 else 2 + rank % 3):
            word += letters[number % len(letters)]
            number //= len(letters)
        spelled[rank] = word + (str(rank) if rank > 100 else "")
    return [spelled[rank] for rank in ranks.tolist()]


def corpus(source: str, passages: int, queries: int) -> tuple[list[str], list[str]]:
    """Seeded passages of 300 to 850 characters, and queries."""
    if source == "expertqa":
        sentences, questions = expertqa_sentences(Path(os.environ["QABENCH_MIRROR"]))
        draw = random.Random(0)
        return [_joined(draw, sentences) for _ in range(passages)], draw.sample(questions, min(queries, len(questions)))
    generator = np.random.default_rng(0)
    sizes = generator.integers(60, 140, passages).tolist(), generator.integers(6, 20, queries).tolist()
    drawn = iter(zipf_words(generator, sum(map(sum, sizes))))
    texts, asked = ([" ".join(islice(drawn, size)) for size in part] for part in sizes)
    return texts, asked


def _joined(draw: random.Random, sentences: Sequence[str]) -> str:
    wanted = draw.randint(300, 850)
    parts: list[str] = []
    while sum(map(len, parts)) < wanted:
        parts.append(sentences[draw.randrange(len(sentences))])
    return " ".join(parts)[: wanted + 100]


class Engine:
    """One engine: how it indexes and searches. ``method`` is ours of the same formula, None where there is none."""

    package: str | None = None
    method: str | None = "okapi"
    slow = False

    def tokens(self, texts: Sequence[str]) -> Any:
        """What is done before the clock of the index starts."""
        return tokenize(words, texts)

    def index(self, prepared: Any) -> None:
        raise NotImplementedError

    def query(self, text: str) -> Any:
        """What is done before the clock of a query starts."""
        return words(text)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        raise NotImplementedError

    def batch(self, queries: Sequence[Any], k: int) -> None:
        for query in queries:
            self.search(query, k)

    def load_seconds(self, folder: Path) -> float | None:
        """Saves, and opens again."""
        return None


class Ours(Engine):
    dtype = "float64"

    def tokens(self, texts: Sequence[str]) -> Any:
        return texts

    def index(self, prepared: Any) -> None:
        self.made = BM25Index(prepared, self.method or "okapi", dtype=self.dtype)

    def query(self, text: str) -> Any:
        return text

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        hits = self.made.search(query, k)
        return hits.positions, hits.scores

    def batch(self, queries: Sequence[Any], k: int) -> None:
        self.made.search_batch(queries, k)

    def load_seconds(self, folder: Path) -> float | None:
        self.made.save(folder / "index")
        start = time.perf_counter()
        BM25Index.load(folder / "index")
        return time.perf_counter() - start


class OursPlus(Ours):
    method = "bm25+"


class OursFloat32(Ours):
    dtype = "float32"


class RankBm25(Engine):
    package = "rank_bm25"
    slow = True

    def index(self, prepared: Any) -> None:
        import rank_bm25

        self.made = rank_bm25.BM25Okapi(prepared)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        scores = self.made.get_scores(query)
        best = np.argsort(scores)[::-1][:k]
        return best.tolist(), scores[best].tolist()


class RankBm25Rs(Engine):
    package = "rank_bm25_rs"

    def index(self, prepared: Any) -> None:
        import rank_bm25_rs

        self.made = rank_bm25_rs.BM25Okapi(prepared)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        scores = np.asarray(self.made.get_scores(query))
        best = np.argsort(scores)[::-1][:k]
        return best.tolist(), scores[best].tolist()


class Bm25s(Engine):
    package = "bm25s"
    method = "bm25+"
    backend = "numpy"

    def index(self, prepared: Any) -> None:
        import bm25s

        self.made = bm25s.BM25(method="bm25+", delta=1.0, backend=self.backend)
        self.made.index(prepared, show_progress=False)
        if self.backend == "numba":
            self.search(next(iter(prepared)), 10)  # compiles

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        positions, scores = self.made.retrieve([query], k=k, show_progress=False, n_threads=0)
        return positions[0].tolist(), scores[0].tolist()

    def batch(self, queries: Sequence[Any], k: int) -> None:
        self.made.retrieve(list(queries), k=k, show_progress=False, n_threads=-1)

    def load_seconds(self, folder: Path) -> float | None:
        import bm25s

        self.made.save(folder / "bm25s", show_progress=False)
        start = time.perf_counter()
        bm25s.BM25.load(folder / "bm25s", mmap=True)
        return time.perf_counter() - start


class Bm25sNumba(Bm25s):
    package = "numba"
    backend = "numba"


class Tantivy(Engine):
    package = "tantivy"
    method = None

    def tokens(self, texts: Sequence[str]) -> Any:
        return texts

    def index(self, prepared: Any) -> None:
        import tantivy

        schema = tantivy.SchemaBuilder().add_text_field("text").add_integer_field("position", stored=True).build()
        self.made = tantivy.Index(schema)
        writer = self.made.writer(heap_size=256_000_000, num_threads=len(os.sched_getaffinity(0)))
        for position, text in enumerate(prepared):
            writer.add_document(tantivy.Document(text=text, position=position))
        writer.commit()
        writer.wait_merging_threads()
        self.made.reload()
        self.searcher = self.made.searcher()

    def query(self, text: str) -> Any:
        return self.made.parse_query(" ".join(words(text)), ["text"])

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        hits = self.searcher.search(query, k).hits
        return [self.searcher.doc(address)["position"][0] for _, address in hits], [score for score, _ in hits]


class Fts5(Engine):
    method = None
    slow = True

    def tokens(self, texts: Sequence[str]) -> Any:
        return texts

    def index(self, prepared: Any) -> None:
        self.made = sqlite3.connect(":memory:")
        self.made.execute("CREATE VIRTUAL TABLE passages USING fts5(text)")
        self.made.executemany("INSERT INTO passages (rowid, text) VALUES (?, ?)", enumerate(prepared))
        self.made.commit()

    def query(self, text: str) -> Any:
        return " OR ".join(f'"{term}"' for term in words(text))

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        found = "SELECT rowid, -rank FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
        rows = self.made.execute(found, (query, k)).fetchall()
        return [row[0] for row in rows], [row[1] for row in rows]


ENGINES: dict[str, type[Engine]] = {
    "qabench okapi": Ours,
    "qabench bm25+": OursPlus,
    "qabench okapi, float32": OursFloat32,
    "rank_bm25": RankBm25,
    "rank_bm25_rs": RankBm25Rs,
    "bm25s, numpy": Bm25s,
    "bm25s, numba": Bm25sNumba,
    "tantivy": Tantivy,
    "SQLite FTS5": Fts5,
}


def measure(name: str, options: argparse.Namespace, texts: list[str], queries: list[str], pipe: Any) -> None:
    """Runs in the engine's own process, forked: the texts are shared."""
    engine = ENGINES[name]()
    before = resident()
    start = time.perf_counter()
    prepared = engine.tokens(texts)
    token_seconds = time.perf_counter() - start
    start = time.perf_counter()
    engine.index(prepared)
    result: dict[str, Any] = {"tokens": token_seconds, "index": time.perf_counter() - start}
    result["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    del prepared
    some = [engine.query(text) for text in (queries[:SLOW_QUERIES] if engine.slow else queries)]
    seconds, result["found"] = [], []
    for query in some:
        start = time.perf_counter()
        result["found"].append(engine.search(query, options.k))
        seconds.append(time.perf_counter() - start)
    result["p50"], result["p95"] = np.percentile(seconds, [50, 95]).tolist()
    result["seconds"] = seconds
    if not engine.slow:
        many = some * -(-options.batch // len(some))
        start = time.perf_counter()
        engine.batch(many, options.k)
        result["batch"] = len(many) / (time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as folder:
        result["load"] = engine.load_seconds(Path(folder))
    pipe.send(result)


def resident() -> float:
    """Megabytes of this process that are in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def run(name: str, options: argparse.Namespace, texts: list[str], queries: list[str]) -> dict[str, Any] | None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(name, options, texts, queries, sender))
    process.start()
    sender.close()
    try:
        result: dict[str, Any] | None = receiver.recv()
    except EOFError:
        result = None
    process.join()
    return result


def equal(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    """How many queries have the same scores, rank by rank, and the same documents above the last tie."""
    pairs = list(zip(ours, theirs, strict=False))
    good = 0
    for (positions, scores), (other_positions, other_scores) in pairs:
        last = min(scores) * (1 + 1e-6)
        above = {p for p, s in zip(positions, scores, strict=True) if s > last}
        good += bool(np.allclose(scores, other_scores, rtol=1e-6, atol=0)) and above <= set(other_positions)
    return f"{good}/{len(pairs)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--batch", type=int, default=2000, help="queries of the batch, the same ones repeated")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--source", choices=("expertqa", "zipf"))
    parser.add_argument("--only", nargs="*", choices=list(ENGINES), default=list(ENGINES))
    options = parser.parse_args()
    source = options.source or ("expertqa" if os.environ.get("QABENCH_MIRROR") else "zipf")
    texts, queries = corpus(source, options.passages, options.queries)
    megabytes = sum(map(len, texts)) / 1e6
    terms = sum(len(words(query)) for query in queries) / len(queries)
    print(
        f"{len(texts)} passages ({source}, {megabytes:.0f} M characters), {len(queries)} queries of {terms:.1f} terms,"
    )
    print(f"k {options.k}, {len(os.sched_getaffinity(0))} processors, load at the start {os.getloadavg()[0]:.1f}")
    heads = ("tokens s", "index s", "peak MB", "p50 ms", "p95 ms", "mean ms", "ratio", "batch q/s", "load ms")
    print(f"{'':24}" + "".join(f"{head:>10}" for head in heads))
    results: dict[str, dict[str, Any]] = {}
    names = sorted(options.only, key=lambda name: name != "rank_bm25")
    for name in names:
        package = ENGINES[name].package
        if package and importlib.util.find_spec(package) is None:
            print(f"{name:24}  not installed")
            continue
        result = run(name, options, texts, queries)
        if result is None:
            print(f"{name:24}  failed (out of memory?)")
            continue
        results[name] = result
        print(line(name, result, results), flush=True)
    ours = {ENGINES[name].method: results[name]["found"] for name in list(ENGINES)[:2] if name in results}
    for name, result in results.items():
        if reference := ours.get(ENGINES[name].method):
            print(f"{name:24} rankings equal to qabench's: {equal(reference, result['found'])}")


def line(name: str, result: dict[str, Any], results: dict[str, dict[str, Any]]) -> str:
    base = results.get("rank_bm25")
    count = min(len(result["seconds"]), SLOW_QUERIES)
    # The same queries on both sides.
    ratio = sum(base["seconds"][:count]) / sum(result["seconds"][:count]) if base else None
    cells = [
        f"{result['tokens']:.2f}",
        f"{result['index']:.2f}",
        f"{result['peak']:.0f}",
        f"{1000 * result['p50']:.2f}",
        f"{1000 * result['p95']:.2f}",
        f"{1000 * np.mean(result['seconds']):.2f}",
        f"{ratio:.0f}x" if ratio else "-",
        f"{result['batch']:.0f}" if "batch" in result else "-",
        "-" if result["load"] is None else f"{1000 * result['load']:.1f}",
    ]
    return f"{name:24}" + "".join(f"{cell:>10}" for cell in cells)


if __name__ == "__main__":
    sys.exit(main())
