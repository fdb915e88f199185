"""Times BM25 over passages: qabench, rank_bm25, bm25s, rank_bm25_rs, tantivy and SQLite FTS5, rankings compared.

    pip install "qabench[retrieval]" rank-bm25-rs tantivy    # and numba, for bm25s's fast path
    python performance/bm25.py [--passages 100000] [--queries 200] [--source expertqa|zipf] [--only NAME ...]

Passages are ExpertQA's sentences in seeded random order (``QABENCH_MIRROR``) or, without it, seeded words of a Zipf
distribution: about 60 MB for 100,000. Queries are ExpertQA's questions, or words drawn like those of passages. Engines
that take tokens get those of qabench, and "tokens s" is the time to make them; for qabench, tantivy and FTS5,
tokenization is part of "index s". Each engine runs in a separate process; "peak MB" is its memory in addition to the
texts, including tokens. A query is one call for k documents. The ratio is to rank_bm25 on the same queries. At the end,
rankings are compared: the k scores with those of qabench's index with the same formula (tantivy and FTS5 use other
formulas), and the documents above the last tie.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bm25_engines import ENGINES
from bm25_passages import corpus

from qabench.retrieval.bm25.tokenizers import words

SLOW_QUERIES = 10  # for engines that take half a second per query


def measure(name: str, options: argparse.Namespace, texts: list[str], queries: list[str], pipe: Any) -> None:
    """Runs in the engine's process, which is forked so that it shares the texts."""
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
    """The resident memory of this process, in megabytes."""
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
    """The number of queries with the same scores, rank by rank, and the same documents above the last tie."""
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
    parser.add_argument("--batch", type=int, default=2000, help="queries of the batch, repeated if necessary")
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
    # The same queries for both engines.
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
