"""Builds a sharded BM25 index within a memory limit, and compares it with a single index, for all formulas.

    python performance/bm25_sharded.py [--passages 1000000] [--queries 200] [--memory 1024] [--shards N ...]

The passages are those of bm25.py (ExpertQA's sentences with ``QABENCH_MIRROR``, else words of a Zipf distribution). The
sharded index is built in a separate process. "peak PSS" is the largest sum, over all its processes, of the memory that
each process has for itself and its share of what they have in common (read every 50 ms), and "peak RSS" the largest
memory of a single process. For each formula, all scores of some queries and the rankings of
all queries are compared with those of an index in memory: they must be equal to the last bit.

With ``--shards``, the same index is built with these numbers of shards instead, and one search is timed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bm25_passages import corpus

from qabench.retrieval import BM25Index
from qabench.retrieval.bm25 import sharded_build
from qabench.retrieval.bm25.backends import InvertedScorer
from qabench.retrieval.bm25.building import Content, Origin
from qabench.retrieval.bm25.corpus_file import CorpusFile
from qabench.retrieval.bm25.formulas import METHODS, Parameters
from qabench.retrieval.bm25.inverted import TermCounter
from qabench.retrieval.bm25.postings import weigh
from qabench.retrieval.bm25.reading import Filters
from qabench.retrieval.bm25.sharded import ShardedIndex, merged
from qabench.retrieval.bm25.tokenizers import words

ALL_SCORES = 20  # queries whose scores of all documents are compared
INTERVAL = 0.05  # seconds between two readings of the memory


def memory_of(process: int) -> tuple[int, int]:
    """The proportional memory of a process and its descendants, and the largest of one of them so far, in bytes.

    Not by ``getrusage``, in which a new process starts with the memory of the one that started it.
    """
    proc = Path(f"/proc/{process}")
    try:
        now = _field(proc / "smaps_rollup", "Pss:")
        peak = _field(proc / "status", "VmHWM:")
        children = (proc / "task" / str(process) / "children").read_text().split()
    except (OSError, StopIteration):  # it has ended
        return 0, 0
    below = [memory_of(int(child)) for child in children]
    return now + sum(one for one, _ in below), max([peak, *(one for _, one in below)])


def _field(path: Path, name: str) -> int:
    return next(int(line.split()[1]) * 1024 for line in path.read_text().splitlines() if line.startswith(name))


def build_in_child(path: Path, folder: Path, method: str, memory: int, workers: int, pipe: Any) -> None:
    """Builds, and sends the seconds.

    The counts of the shards, which do not depend on the formula, are linked from and to the folder ``counts``.
    """
    kept = folder.parent / "counts"
    kept.mkdir(exist_ok=True)
    for file in kept.iterdir():
        os.link(file, folder / file.name)

    def keep(step: str, done: int, total: int) -> None:
        for file in folder.glob("counts-*") if (step, done) == ("weigh", 0) else ():
            if not (kept / file.name).exists():
                os.link(file, kept / file.name)

    start, cpu = time.perf_counter(), os.times()
    source = CorpusFile.open(path, "text")
    sharded_build.build(source, folder, parameters_of(method), words, "float64", memory, workers, keep)
    pipe.send({"seconds": time.perf_counter() - start, "cpu": sum(os.times()[:4]) - sum(cpu[:4])})


def build(path: Path, folder: Path, method: str, memory: int, workers: int) -> dict[str, Any]:
    """Builds in a new process (not a fork: it must not have this process's memory) and measures it."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=build_in_child, args=(path, folder, method, memory, workers, sender))
    process.start()
    sender.close()
    ended, seen = threading.Event(), [(0, 0)]

    def watch() -> None:
        while not ended.wait(INTERVAL):
            seen.append(memory_of(process.pid or 0))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result: dict[str, Any] = receiver.recv()
    finally:
        ended.set()
        watcher.join()
        process.join()
    pss, rss = (max(values) / 2**20 for values in zip(*seen, strict=True))
    return result | {"pss": pss, "rss": rss}


def parameters_of(method: str) -> Parameters:
    return Parameters.of(method, 1.5, 0.75, None, 0.25)


def equal(sharded: ShardedIndex, single: BM25Index, queries: Sequence[str]) -> str:
    """How many queries have the same scores and rankings."""
    scores = sum(np.array_equal(sharded.scores(query), single.scores(query)) for query in queries[:ALL_SCORES])
    rankings = sum(sharded.search(query, 10) == single.search(query, 10) for query in queries)
    return f"all scores {scores}/{min(ALL_SCORES, len(queries))}, rankings {rankings}/{len(queries)}"


def times(index: Any, queries: Sequence[str]) -> str:
    for query in queries[:10]:
        index.search(query, 10)
    seconds = []
    for query in queries:
        start = time.process_time()
        index.search(query, 10)
        seconds.append(time.process_time() - start)
    p50, p95 = np.percentile(seconds, [50, 95])
    return f"search {1000 * statistics.mean(seconds):.2f} ms (p50 {1000 * p50:.2f}, p95 {1000 * p95:.2f})"


def single_indexes(texts: list[str], methods: Sequence[str]) -> Iterator[BM25Index]:
    """One index per formula, as ``BM25Index`` builds it, from terms that are counted once."""
    counter = TermCounter(words)
    for block in batched(texts, 8192):
        counter.add(block)
    vocabulary = dict(counter.vocabulary)
    counts = counter.counts()
    for method in methods:
        scorer = InvertedScorer(weigh(*counts, parameters_of(method), "float64"), vocabulary)
        origin = Origin(len(texts), "", None, (), None)
        index = BM25Index.__new__(BM25Index)
        index._content = Content(parameters_of(method), words, scorer, Filters(), origin)
        yield index


def batched(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def compare_formulas(path: Path, texts: list[str], queries: list[str], options: argparse.Namespace) -> None:
    """The counts of both kinds of index are made once, by the first formula."""
    singles = iter(single_indexes(texts, options.methods))
    for method in options.methods:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            built = build(path, Path(folder), method, options.memory << 20, options.workers)
            sharded, single = ShardedIndex(folder), next(singles)
            about = sharded.info()
            print(
                f"{method:10} {about['shards']} shards, {about['bytes'] / 1e9:.2f} GB, {built['seconds']:.0f} s "
                f"({built['cpu']:.0f} s CPU), peak PSS {built['pss']:.0f} MiB, peak RSS {built['rss']:.0f} MiB: "
                f"{equal(sharded, single, queries)}; {times(sharded, queries[:50])}; "
                f"single: {times(single, queries[:50])}",
                flush=True,
            )


def time_shards(path: Path, queries: list[str], passages: int, options: argparse.Namespace) -> None:
    single: Any = None
    for shards in options.shards:
        with tempfile.TemporaryDirectory(dir=path.parent) as parent:
            folder = Path(parent) / "index"
            folder.mkdir()
            size = -(-passages // shards)
            job = sharded_build.Build(
                CorpusFile.open(path, "text"), parameters_of("bm25+"), words, "float64", folder, size
            )
            (folder / sharded_build.PLAN).write_text(json.dumps(job.plan() | {"complete": False}))
            built = build(path, folder, "bm25+", options.memory << 20, options.workers)
            start = time.process_time()
            index = ShardedIndex(folder)
            opened = time.process_time() - start
            part = (np.arange(10), np.arange(10.0))
            start = time.process_time()
            for _ in range(20):
                merged([part] * len(index._shards), 10)
            merging = (time.process_time() - start) / 20
            found = [index.search(query, 10) for query in queries]
            single = single or found
            same = sum(one == other for one, other in zip(single, found, strict=True))
            print(
                f"{shards:5} shards of {size:,}: build {built['cpu']:.0f} s CPU, peak PSS {built['pss']:.0f} MiB, "
                f"{index.info()['bytes'] / 1e9:.2f} GB; open {opened:.2f} s; merge {1000 * merging:.2f} ms; "
                f"{times(index, queries)}; rankings {same}/{len(queries)}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--memory", type=int, default=1024, help="MiB")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--shards", type=int, nargs="*", help="numbers of shards, the first of which is the reference")
    parser.add_argument("--folder", type=Path, help="for the index; by default the system's folder for temporary files")
    options = parser.parse_args()
    source = "expertqa" if os.environ.get("QABENCH_MIRROR") else "zipf"
    texts, queries = corpus(source, options.passages, options.queries)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "passages.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
        print(f"{len(texts):,} passages ({source}), {path.stat().st_size / 1e6:,.0f} MB, {options.workers} workers")
        if options.shards:
            del texts
            time_shards(path, queries, options.passages, options)
        else:
            compare_formulas(path, texts, queries, options)


if __name__ == "__main__":
    main()
