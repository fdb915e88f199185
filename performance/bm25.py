"""BM25 over passages: one query, and a batch. ``bm25_indexing.py`` measures indexing.

qabench is compared with rank_bm25, rank_bm25_rs, bm25s and tantivy.

    python performance/bm25.py [--sizes 100 1000 10000 100000 1000000] [--rounds 30]

Passages are ExpertQA's sentences in seeded random order (``QABENCH_MIRROR``) or, without it, seeded
words of a Zipf distribution: about 60 MB for 100,000. Queries are ExpertQA's questions, or words
drawn like the passages' words. Times are CPU time on one core: of a query (top 10), the best of all
rounds. Engines take turns in each round, so that other work on the machine slows all of them, up to
100,000 passages. Each engine is in a process of its own. The times of qabench include the
tokenization of queries, the others get tokens. All engines tokenize as part of indexing. tantivy
has its own tokenizer. Engines with the same formula must find the same k scores (to 1e-6) and the
same documents above the last tie.

"Batch, all cores" is the only time that a clock on the wall would show. It is left out if other
programs use all cores. The hits are those of an index to which the last hundredth of the passages
was added.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.util
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bm25_engines import ENGINES
from bm25_passages import corpus
from cases import Case, Measured, Unfinished, timed

from qabench.io.tables import Table

PASSAGES = (100, 1_000, 10_000, 100_000, 1_000_000)
K = 10
QUERIES = 100
BATCH = 2_000
CORES = os.sched_getaffinity(0)
# Passages; above, an engine takes too long, or another one shows the same.
LARGEST = {"rank_bm25": 1_000, "rank_bm25_rs": 100_000, "qabench okapi": 100_000}
LARGEST |= {"qabench bm25+, no numba": 100_000, "bm25s numpy, bm25+": 100_000}
# passages for which memory is shown; Arrow keeps some from the first block on
LEAST_MEASURED = 100_000
MEMORY = ("finished index", "peak while building")
# Column -> engines: ours, and the others with the same formula.
OURS = "qabench bm25+"
SAME = {"qabench okapi": ("rank_bm25", "rank_bm25_rs")}
SAME |= {OURS: ("qabench bm25+, no numba", "bm25s numpy, bm25+", "bm25s numba, bm25+")}


def cases(_: int | None = None) -> Iterator[Case]:
    texts, queries = corpus("expertqa" if os.environ.get("QABENCH_MIRROR") else "zipf", 100_000, 5)
    ours, theirs = ENGINES["qabench okapi"](), ENGINES["rank_bm25"]()
    ours.index(texts)
    theirs.index(texts)
    prepared = {engine: [engine.query(text) for text in queries] for engine in (ours, theirs)}

    def one_query(engine: Any) -> Measured:
        result = timed(lambda: [engine.search(query, K) for query in prepared[engine]])
        return Measured(result.seconds / len(queries), result.output)

    name = "one query of 100,000 passages, okapi"
    yield Case(name, partial(one_query, ours), {"rank_bm25": partial(one_query, theirs)}, equal)


def table(largest: int, rounds: int, sizes: Sequence[int] = PASSAGES) -> Table:
    """Measure the queries of all engines, with times in microseconds; ``sizes`` up to ``largest``."""
    sizes = [size for size in sizes if size <= largest]
    results = results_of("bm25", sizes, rounds)
    parts = [("one query", "µs"), ("batch", "µs"), ("batch, all cores", "µs")]
    title = (
        f"CPU time per query (a batch has {BATCH:,}; with all cores: elapsed time), by number of passages; ratios "
        f"to {OURS}"
    )
    return Table(title, ["", *(f"{size:,}" for size in sizes)], rows_of(results, sizes, parts))


def results_of(
    script: str, sizes: Sequence[int], rounds: int
) -> dict[tuple[str, int], dict[str, float]]:
    """Return (engine, size) -> part -> time. A run that was interrupted goes on."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    unfinished = Unfinished(script)
    results: dict[tuple[str, int], dict[str, float]] = {}
    for size in sizes:
        times_by_engine = unfinished.get(f"{size}", partial(measured, size, rounds))
        for name, times in times_by_engine.items():
            results[name, size] = times
    unfinished.finish()
    return results


def rows_of(
    results: Mapping[tuple[str, int], Mapping[str, float]],
    sizes: Sequence[int],
    parts: Sequence[tuple[str, str]],
) -> list[list[str]]:
    """Return a row per engine and part, with a cell per size. Parts have units."""
    rows = []
    for part, unit in parts:
        for name in ENGINES:
            times = [results.get((name, size), {}).get(part) for size in sizes]
            ours = [results.get((OURS, size), {}).get(part) for size in sizes]
            cells = [shown(*pair) for pair in zip(times, ours, strict=True)]
            if any(cells):
                rows.append([f"{part}, {unit}: {name}", *cells])
    return rows


def shown(value: float | None, ours: float | None) -> str:
    """Return a time or a size; of another engine, the ratio to ours first."""
    if value is None:
        return ""
    text = f"{value:,.{value < 100:d}f}"
    return text if ours in (None, value) else f"{value / ours:.3g}x, {text}"


def measured(size: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return engine -> part -> time, for one size. Without rounds, no queries are measured."""
    source = "expertqa" if os.environ.get("QABENCH_MIRROR") else "zipf"
    texts, queries = corpus(source, size, QUERIES)
    names = [name for name in ENGINES if usable(name, size)]
    times: dict[str, dict[str, float]] = {name: {} for name in names}
    hits: dict[str, Any] = {}
    parts = ["one query", "batch"]
    # A clock on the wall says nothing if other programs use the cores.
    if os.getloadavg()[0] < len(CORES):
        parts.append("batch, all cores")
    for group in (
        [names] if size <= 100_000 else [[name] for name in names]
    ):  # 1,000,000 passages fill the memory
        engines = {name: Child(name, texts, queries) for name in group}
        for name, engine in engines.items():
            times[name] |= engine.call("first index")
        for _ in range(indexings(size) - 1):
            for name, engine in engines.items():
                times[name]["indexing"] = min(times[name]["indexing"], engine.call("index") * 1e3)
        if OURS in engines:
            postings = engines[OURS].call("postings")
        for name, engine in engines.items():
            if ENGINES[name].can_add:
                times[name]["adding 1 %"] = engine.call("add") * 1e3
        hits |= {name: engine.call("hits") for name, engine in engines.items()}
        for number in range(rounds):
            for part in parts:
                for name, engine in engines.items():
                    time_part(times[name], engine, part, name, size, number)
        for engine in engines.values():
            engine.close()
    check(hits)
    for part in MEMORY:
        for name in names:
            size_of_part = times[name].pop(part)
            if size >= LEAST_MEASURED:
                times[name][part] = size_of_part / postings
    print(f"bm25: {size:,} passages", file=sys.stderr, flush=True)
    return times


def indexings(size: int) -> int:
    """Return how often each engine indexes the passages. The shortest time counts."""
    return max(3, min(10, 100_000 // size)) if size <= 100_000 else 1


def time_part(
    times: dict[str, float], engine: Child, part: str, name: str, size: int, number: int
) -> None:
    """Time a part once, slow parts in three rounds only, and keep the best time in µs."""
    batch = part.startswith("batch")
    few = name == "rank_bm25" or (batch and size > 10_000) or size > 100_000
    if (batch and not ENGINES[name].has_batch) or (few and number >= 3):
        return
    repeats = max(5, 200_000 // size // QUERIES) if size <= 10_000 and not few else 1
    times[part] = min(times.get(part, np.inf), engine.call(part, repeats) * 1e6)


def usable(name: str, size: int) -> bool:
    """Return whether an engine is installed, and fast enough for the passages."""
    package = ENGINES[name].package
    return (not package or importlib.util.find_spec(package) is not None) and size <= LARGEST.get(
        name, size
    )


def check(hits: Mapping[str, Any]) -> None:
    """Raise SystemExit unless engines with the same formula find the same."""
    for ours, others in SAME.items():
        for name in others:
            if name in hits and not equal(hits[ours], hits[name]):
                raise SystemExit(f"the output of {name} differs from the output of {ours}")


def equal(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Return whether the scores are the same, rank by rank, and the documents above the last tie."""
    for (positions, scores), (other_positions, other_scores) in zip(ours, theirs, strict=True):
        last = min(scores) * (1 + 1e-6)
        above = {
            position for position, score in zip(positions, scores, strict=True) if score > last
        }
        if not np.allclose(scores, other_scores, rtol=1e-6, atol=0) or not above <= set(
            other_positions
        ):
            return False
    return True


class Child:
    """An engine in a process of its own, forked so that it shares the passages."""

    def __init__(self, name: str, texts: list[str], queries: list[str]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, pipe = context.Pipe()
        self.process = context.Process(target=serve, args=(name, texts, queries, pipe), daemon=True)
        self.process.start()

    def call(self, what: str, repeats: int = 1) -> Any:
        """Return the seconds of indexing, of a query or of one in a batch, or the hits."""
        self.pipe.send((what, repeats))
        return self.pipe.recv()

    def close(self) -> None:
        self.pipe.send(("end", 0))
        self.process.join()


def serve(name: str, texts: list[str], queries: list[str], pipe: Any) -> None:
    """Answer the calls of ``Child``."""
    engine = ENGINES[name]()
    prepared: list[Any] = []
    while (call := pipe.recv())[0] != "end":
        what, repeats = call
        if what == "index":
            pipe.send(seconds_of(lambda: engine.index(texts)))
            prepared = [engine.query(text) for text in queries]
        elif what == "first index":
            pipe.send(first_index(engine, texts))
            prepared = [engine.query(text) for text in queries]
        elif what == "postings":
            pipe.send(engine.postings)
        elif what == "add":
            pipe.send(seconds_to_add(engine, texts, prepared[0]))
        elif what == "hits":
            pipe.send([[list(part) for part in engine.search(query, K)] for query in prepared])
        elif what == "one query":
            pipe.send(seconds_of(partial(search_each, engine, prepared), repeats) / len(prepared))
        else:
            batch = prepared * (BATCH // len(prepared))
            own = os.sched_getaffinity(0)
            os.sched_setaffinity(0, CORES if what == "batch, all cores" else own)
            clock = time.perf_counter if what == "batch, all cores" else time.process_time
            pipe.send(seconds_of(partial(engine.batch, batch, K), clock=clock) / len(batch))
            os.sched_setaffinity(0, own)


def first_index(engine: Any, texts: list[str]) -> dict[str, float]:
    """Return the CPU time of indexing, and by how much memory of its own the process grows."""
    engine.index(texts[:100])  # imports what it needs
    free_memory()  # also that of the process that this one was forked from
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak so far
    seconds = seconds_of(lambda: engine.index(texts))
    peak = resident("VmHWM")
    free_memory()
    sizes = (resident("VmRSS") - before, peak - before)
    return {"indexing": seconds * 1e3, **dict(zip(MEMORY, sizes, strict=True))}


def free_memory() -> None:
    """Give memory that is not used back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def resident(name: str) -> int:
    """Return a size of this process in bytes: VmRSS is its memory now, VmHWM its peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024


def seconds_to_add(engine: Any, texts: list[str], query: Any) -> float:
    """Return the CPU time of adding the last hundredth of the passages, and of a search.

    The fastest of three counts, as of all times: the first one also waits for memory that no
    process had before.
    """
    first = len(texts) * 99 // 100
    engine.index(texts[:first])
    smaller = engine.engine
    seconds = []
    for _ in range(3):
        engine.engine = smaller
        seconds.append(seconds_of(lambda: (engine.add(texts[first:]), engine.search(query, K))))
    return min(seconds)


def search_each(engine: Any, queries: Sequence[Any]) -> None:
    for query in queries:
        engine.search(query, K)


def seconds_of(
    call: Callable[[], Any], repeats: int = 1, clock: Callable[[], float] = time.process_time
) -> float:
    """Return the shortest time of a call, by default CPU time."""
    best = np.inf
    for _ in range(repeats):
        start = clock()
        call()
        best = min(best, clock() - start)
    return float(best)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=PASSAGES)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    sys.stdout.write(table(max(options.sizes), options.rounds, options.sizes).text() + "\n")
