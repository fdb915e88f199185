"""BM25 over passages: indexing, its memory, and adding 1 %.

    python performance/bm25_indexing.py [--sizes 100 1000 10000 100000 1000000]

Passages and engines are those of ``bm25.py``. Times are CPU time on one core, the best of all
rounds, in which the engines take turns; of 1,000,000 passages, the time of one round.

Memory is what the process of an engine grows by while it indexes, and what is left after it,
divided by the number of postings (pairs of a term and a document that contains it). qabench
computes the weights of a term when it is first asked for: 8 bytes per posting more if all terms
are, and up to 256 MiB.

"Adding 1 %" is the time to add the last hundredth of the passages to an index of the others, with a
search right after. The hits of all engines are compared, as in ``bm25.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from bm25 import MEMORY, OURS, PASSAGES, results_of, rows_of
from bm25_engines import ENGINES

from qabench.io.tables import Table


def table(largest: int, rounds: int, sizes: Sequence[int] = PASSAGES) -> Table:
    """Measure the indexing of all engines; ``sizes`` up to ``largest``."""
    sizes = [size for size in sizes if size <= largest]
    results = results_of("bm25_indexing", sizes, rounds=0)
    parts = [("indexing", "ms"), *((part, "bytes per posting") for part in MEMORY)]
    rows = rows_of(results, sizes, parts)
    for name in ENGINES:
        cells = [share_of_indexing(results.get((name, size), {})) for size in sizes]
        if any(cells):
            rows.append([f"adding 1 %, ms: {name}", *cells])
    title = f"CPU time of indexing, and memory, by number of passages; ratios to {OURS}"
    return Table(title, ["", *(f"{size:,}" for size in sizes)], rows)


def share_of_indexing(times: Mapping[str, float]) -> str:
    """Return the time to add 1 %, the share of the time to index all passages first."""
    if "adding 1 %" not in times:
        return ""
    return f"{times['adding 1 %'] / times['indexing']:.1%}, {times['adding 1 %']:,.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=PASSAGES)
    options = parser.parse_args()
    sys.stdout.write(table(max(options.sizes), 0, options.sizes).text() + "\n")
