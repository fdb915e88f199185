"""Measures ``qabench wiki index``: CPU time and memory per page for reading, parsing, chunking and indexing.

    python performance/wiki_index.py FILE.zim [--sample 1000] [--parts N] [--workers 2]

First, the steps are timed apart, in one process, on a seeded sample of entries spread over the file. Then parts of the
file are parsed by processes, as the command does (``--parts``: only N of them, evenly spread; by default all), and
their passages are indexed; CPU time is that of all processes. wiki_zim.py writes a file of many pages to measure with.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from qabench.io.workers import map_parallel
from qabench.retrieval.bm25 import sharded_build
from qabench.retrieval.bm25.corpus_parts import CorpusParts
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.sharded import ShardedIndex
from qabench.retrieval.bm25.tokenizers import words
from qabench.retrieval.wiki.chunk import chunk_text
from qabench.retrieval.wiki.markdown import article_to_markdown
from qabench.retrieval.wiki.page import PageUnreadable
from qabench.retrieval.wiki.zim import ZimFile, decoded
from qabench.retrieval.wiki.zim_parts import PASSAGE, Parsing, counts_of, parse_part


class Clock:
    """CPU seconds by step."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[step] += time.process_time() - start


def measure_steps(path: Path, count: int) -> None:
    """Times the steps of ``parse_part`` apart on single entries, each from a different place of the file."""
    file, clock = ZimFile(path), Clock()
    entries = random.Random(0).sample(range(file.size), min(count, file.size))
    sizes, characters, passages, bad = [], 0, 0, 0
    for entry in entries:
        with clock("read"):
            (found,) = file.articles(entry, entry + 1)
        if found is None or isinstance(found, tuple):
            continue
        try:
            with clock("parse"):
                text = article_to_markdown(decoded(found.html))
        except PageUnreadable:
            bad += 1
            continue
        with clock("chunk"):
            passages += len(chunk_text(text, PASSAGE))
        sizes.append(len(found.html))
        characters += len(text)
    n, megabytes = len(sizes), sum(sizes) / 1e6
    print(f"sample: {n:,} pages, and {bad} unreadable; HTML per page {sum(sizes) / n:,.0f} bytes (median")
    print(f"  {statistics.median(sizes):,.0f}), Markdown {characters / n:,.0f} characters, {passages / n:.1f} passages")
    for step, seconds in clock.seconds.items():
        print(
            f"  {step:6} {1000 * seconds / n:7.2f} ms/page {n / seconds:9,.0f} pages/s {megabytes / seconds:8.2f} MB/s"
        )


def used_so_far() -> tuple[float, float]:
    """CPU seconds of this process and its ended children, and the largest memory of one of them in MiB."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both), max(one.ru_maxrss for one in both) / 1024


def measure_build(path: Path, folder: Path, parts: int | None, workers: int, memory: int) -> None:
    job = Parsing(path, folder / "pages")
    total = -(-ZimFile(path).size // job.entries_per_part)
    cpu, _ = used_so_far()
    start = time.perf_counter()
    count = min(parts or total, total)
    chosen = [total * number // count for number in range(count)]
    map_parallel(partial(parse_part, job), chosen, workers, items_per_task=1)
    parsing, peak = used_so_far()
    counts = counts_of(job.folder)
    size = sum(file.stat().st_size for file in job.folder.glob("*.parquet"))
    used, megabytes = parsing - cpu, counts.html / 1e6
    print(
        f"parsed: {counts.pages:,} pages, {megabytes:,.0f} MB of HTML, {counts.characters / 1e6:,.0f} M characters of"
    )
    print(
        f"  Markdown, {counts.passages:,} passages, {size / 1e6:,.0f} MB; "
        f"{len(counts.bad)} unreadable, {counts.blank} blank"
    )
    print(f"  {used:.0f} s CPU: {counts.pages / used:,.1f} pages/s and {megabytes / used:.2f} MB/s per core")
    print(f"  {time.perf_counter() - start:.0f} s elapsed; peak RSS of a process {peak:.0f} MiB", flush=True)
    start, own = time.perf_counter(), time.process_time()
    corpus = CorpusParts.open(job.folder, "text")
    sharded_build.build(
        corpus, folder, Parameters.of("bm25+", 1.5, 0.75, None, 0.25), words, memory=memory, workers=workers
    )
    cpu, peak = used_so_far()
    used = cpu - parsing
    about, main_cpu = ShardedIndex(folder).info(), time.process_time() - own
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"indexed: {about['shards']} shards, {about['terms']:,} terms, {about['bytes'] / 1e6:,.0f} MB")
    print(
        f"  {used:.0f} s CPU: {counts.pages / used:,.0f} pages/s and {counts.passages / used:,.0f} passages/s per core"
    )
    print(
        f"  of which {main_cpu:.1f} s in the main process, for the vocabulary; "
        f"{time.perf_counter() - start:.0f} s elapsed"
    )
    print(f"  peak RSS of a process {peak:.0f} MiB, of the main process {mine:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sample", type=int, default=1000)
    parser.add_argument("--parts", type=int, help="parse only so many parts")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--memory", type=int, default=1024, help="MiB for indexing")
    parser.add_argument("--output", type=Path, help="a folder that is kept; by default a temporary one")
    options = parser.parse_args()
    file = ZimFile(options.file)
    print(f"{options.file.name}: {file.size:,} entries, {options.file.stat().st_size / 1e6:,.0f} MB", flush=True)
    measure_steps(options.file, options.sample)
    with tempfile.TemporaryDirectory() as folder:
        measure_build(
            options.file, options.output or Path(folder), options.parts, options.workers, options.memory << 20
        )


if __name__ == "__main__":
    main()
