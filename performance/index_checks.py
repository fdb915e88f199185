"""Times opening a BM25 index and its first query, with and without the checks of its content.

    python performance/index_checks.py [--passages 100000] [--repeat 40] [--queries 5]

Each measurement is a new process that was forked after the imports, so that nothing of the file is mapped; a cold file
is dropped from the page cache first. Prints medians of processor time, and how much of it the checks are.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from bm25_passages import corpus

from qabench.retrieval import BM25Index
from qabench.retrieval.bm25 import storage
from qabench.retrieval.bm25.postings import Postings
from qabench.retrieval.bm25.stored import StoredPostings

CHECKS = ("all checks", "no checks of postings", "no checks")


def unchecked(name: str) -> None:
    """Takes the checks out of this process."""
    if name != CHECKS[0]:
        StoredPostings.of, StoredPostings.lookup = Postings.of, Postings.lookup  # type: ignore[method-assign]
    if name == CHECKS[2]:
        mock.patch.object(storage.StoredArrays, "_has_changed", lambda *_: False).start()


def forked(measure: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """Two numbers that ``measure`` returns in a process of its own."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.write(writing, struct.pack("dd", *measure()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    opening, query = struct.unpack("dd", found)
    return opening, query


def measured(path: Path, query: str, checks: str, cold: bool) -> tuple[float, float]:
    """The processor time of opening the index and of its first query, in milliseconds."""
    with path.open("rb") as file:
        if cold:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            while file.read(1 << 20):
                pass

    def measure() -> tuple[float, float]:
        unchecked(checks)
        begin = time.process_time()
        index = BM25Index.load(path)
        opened = time.process_time()
        index.search(query, 10)
        return 1000 * (opened - begin), 1000 * (time.process_time() - opened)

    return forked(measure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=40)
    options = parser.parse_args()
    texts, queries = corpus("zipf", options.passages, options.queries)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.bm25"
        BM25Index(texts).save(path)
        del texts
        os.sync()
        print(f"{options.passages:,} passages, {path.stat().st_size >> 20} MiB, {options.queries} queries")
        measured(path, queries[0], CHECKS[0], False)
        for cold in (False, True):
            table(path, queries, options.repeat, cold)


def table(path: Path, queries: list[str], repeat: int, cold: bool) -> None:
    found: dict[str, list[tuple[float, float]]] = {checks: [] for checks in CHECKS}
    for number in range(repeat):
        for query in queries:
            for checks in CHECKS if number % 2 else reversed(CHECKS):
                found[checks].append(measured(path, query, checks, cold))
    least = statistics.median(map(sum, found[CHECKS[2]]))
    print("not in the page cache" if cold else "in the page cache")
    for checks, values in found.items():
        opening, query = (statistics.median(part) for part in zip(*values, strict=True))
        both = statistics.median(map(sum, values))
        print(f"  {checks:<22} open {opening:6.2f}  query {query:6.2f}  both {both:6.2f} ms  {both / least - 1:+.1%}")


if __name__ == "__main__":
    main()
