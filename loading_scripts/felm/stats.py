"""Statistics of FELM, computed from the dataset's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from qabench.data.rows import Row, Splits
from qabench.io.tables import Table, count_table
from qabench.loading_scripts.felm.parse import DOMAINS, ERROR_TYPES

ALL = "all"
SEGMENTS = ("segments", "true", "errors")
# The numbers of SEGMENTS in the table of the README of FELM's authors.
PUBLISHED: dict[str, tuple[int, ...]] = {
    "wk": (532, 385, 147),
    "science": (683, 582, 101),
    "math": (599, 477, 122),
    "reasoning": (1025, 877, 148),
    "writing_rec": (1588, 1321, 267),
    ALL: (4427, 3642, 785),
}
PUBLISHED_RESPONSES = 847
NO_TYPES = "(no list of types)"
TYPES = [
    f"{kind}, {label}"
    for kind in (*map(repr, ERROR_TYPES), NO_TYPES)
    for label in ("true", "error")
]


def tables(config: str, splits: Splits) -> list[Table]:
    """Count segments, responses and types of error by domain.

    The config ``sample`` has no published numbers.
    """
    rows = [row for split in splits.values() for row in split]
    counts = Counter((figure, row["domain"]) for row in rows for figure in _figures(row))
    domains = [name for name in DOMAINS if ("responses", name) in counts]
    responses = ("responses", "all segments true", "with an error")
    types = [kind for kind in TYPES if any((kind, domain) in counts for domain in domains)]
    return [
        _segments(counts, domains, config),
        count_table("Responses by domain", "responses", counts, domains, responses, total=ALL),
        count_table("Segments by type of error", "type, label", counts, domains, types, total=ALL),
    ]


def _figures(row: Row) -> Iterator[str]:
    """Yield the name of each figure that counts something in the row, as often as it counts."""
    yield from ("responses", "all segments true" if all(row["labels"]) else "with an error")
    types = [repr(kind) for kind in row["type"]] or [NO_TYPES] * len(row["labels"])
    for label, kind in zip(row["labels"], types, strict=True):
        yield from (
            "segments",
            "true" if label else "errors",
            f"{kind}, {'true' if label else 'error'}",
        )


def _segments(counts: Counter[tuple[str, str]], domains: list[str], config: str) -> Table:
    names = ("responses", *SEGMENTS)
    rows, differing = [], []
    for domain in domains if len(domains) == 1 else [*domains, ALL]:
        parts = domains if domain == ALL else [domain]
        responses, *figures = (sum(counts[name, part] for part in parts) for name in names)
        published = PUBLISHED[domain]
        row: list[Any] = [domain, responses, PUBLISHED_RESPONSES if domain == ALL else None]
        for figure, expected in zip(figures, published, strict=True):
            row += [figure, expected]
        if config == "sample":
            row[2::2] = [None] * len(names)
        elif tuple(figures) != published:
            differing.append(domain)
        rows.append(row)
    columns = [cell for name in names for cell in (name, f"{name} (published)")]
    note = (
        f"The README of FELM's authors has other numbers than their data file for {', '.join(differing)}. Scores are "
        "computed on the data file."
    )
    return Table("Segments by domain", ["domain", *columns], rows, [note] if differing else [])
