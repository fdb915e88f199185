"""Published scores and statistics, recomputed from public data and compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from qabench.data.rows import Json, Row, Splits, read_json
from qabench.errors import SourceError
from qabench.io.tables import Table
from qabench.loading import load_dataset
from qabench.loading_scripts import dataset_table, folder_of, open_path


@dataclass(frozen=True, slots=True)
class Check:
    """A number that was computed from public data, or could not be.

    Attributes:
        name: what it counts or measures, such as "all: segments: science".
        published: the published value, or None.
        computed: the value computed here. None if it was not computed, for the reason in
            ``explanation``.
        explanation: why the values differ, or "" if the reason is unknown, or if they agree.
        kind: "score" for a score of a system, "statistic" for a count of the data.
    """

    name: str
    published: float | None
    computed: float | None
    explanation: str = ""
    kind: Literal["score", "statistic"] = "statistic"

    @property
    def agrees(self) -> bool:
        """Whether the computed value, rounded like the published one, equals it.

        True without a published value.
        """
        if self.published is None:
            return True
        digits = len(str(self.published).partition(".")[2])
        return self.computed is not None and round(self.computed, digits) == self.published


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All published numbers of a benchmark.

    Attributes:
        checks: one per number.
        tables: further numbers, without published values.
        notes: sentences about published numbers that are not among the checks, with the reason.
    """

    checks: list[Check] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def published_numbers(name: str) -> Json:
    """Return the content of a benchmark's ``published.json``, if it has one.

    "published" has the numbers by config, figure and group. "differences" has in the same form the
    numbers of the data that are known to differ, for the "reason". "means" has figures that are
    quotients of two others.
    """
    path = folder_of(name) / "published.json"
    content: Json = read_json(path) if path.is_file() else {}
    return content


def count_table(
    name: str,
    config: str,
    splits: Splits,
    counts_of: Callable[[Row], Mapping[str, int]],
    counted_by: str,
) -> Table:
    """Return the sums of ``Benchmark.counts`` by group, next to the published numbers."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for split, rows in splits.items():
        for row in rows:
            group = str(row.get(counted_by, split))
            for figure, number in counts_of(row).items():
                counts[figure][group] += number
    if len(set().union(*counts.values())) > 1:
        for by_group in counts.values():
            by_group["all"] = by_group.total()
    content = published_numbers(name)
    figures: dict[str, Mapping[str, float]] = dict(counts)
    for figure, (total, number) in content.get("means", {}).items():
        if total in counts:
            figures[figure] = {
                group: round(counts[total][group] / n, 6) for group, n in counts[number].items()
            }
    published = content.get("published", {}).get(config, {})
    lines = [
        [figure, group, published.get(figure, {}).get(group), number]
        for figure, by_group in figures.items()
        for group, number in by_group.items()
    ]
    columns = ["count", counted_by or "split", "published", "here"]
    return Table(f"{dataset_table(name).title}: {config}", columns, lines)


def data_checks(
    name: str, counts_of: Callable[[Row], Mapping[str, int]], counted_by: str
) -> Reproduction:
    """Compare the published numbers of a benchmark's data with the output of ``qabench stats``."""
    reproduction = Reproduction()
    missing = []
    content = published_numbers(name)
    for config in content.get("published", {}):
        splits = available_splits(name, config)
        all_splits = dataset_table(name).config(config).splits
        missing += [f"{config} {split}" for split in all_splits if split not in splits]
        differences = content.get("differences", {}).get(config, {})
        table = count_table(name, config, splits, counts_of, counted_by)
        for figure, group, published, here in table.rows:
            if published is not None:
                is_known = differences.get(figure, {}).get(group) == here
                reason = content["reason"] if is_known else ""
                reproduction.checks.append(
                    Check(f"{config}: {figure}: {group}", published, here, reason)
                )
    if missing:
        reproduction.notes.append(
            f"Not computed, because the files are not available (see `qabench fetch {name}`): {', '.join(missing)}."
        )
    return reproduction


def available_splits(name: str, config: str) -> Json:
    """Return the rows of a config by split, of the splits whose files are available."""
    splits: Json = {}
    for split, files in dataset_table(name).config(config).splits.items():
        with suppress(SourceError):
            for file in files:
                open_path(name, file)
            splits[split] = load_dataset(name, config, split=split, streaming=True)
    return splits
