"""Published scores and statistics, recomputed from public data and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from qabench.data.rows import Json, Splits, read_json
from qabench.errors import SourceError
from qabench.io.tables import Table
from qabench.loading import load_dataset
from qabench.loading_scripts import dataset_table, folder_of, open_path

if TYPE_CHECKING:
    from qabench.benchmarks.base import Benchmark

Kind = Literal["score", "statistic"]


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
    kind: Kind = "statistic"

    @property
    def agrees(self) -> bool:
        """Whether the computed value, rounded like the published one, equals it.

        True without a published value.
        """
        if self.published is None:
            return True
        digits = (
            len(str(self.published).partition(".")[2]) if isinstance(self.published, float) else 0
        )
        return self.computed is not None and round(self.computed, digits) == self.published

    @property
    def unexplained(self) -> bool:
        """Whether there is a difference without an explanation."""
        return not self.agrees and not self.explanation


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


def count_table(benchmark: Benchmark, config: str, splits: Splits) -> Table:
    """Return the sums of ``Benchmark.counts`` by group, next to the published numbers."""
    counts: dict[str, Counter[str]] = {}
    for split, rows in splits.items():
        for row in rows:
            group = str(row.get(benchmark.counted_by, split))
            for figure, number in benchmark.counts(row).items():
                counts.setdefault(figure, Counter())[group] += number
    if len({group for by_group in counts.values() for group in by_group}) > 1:
        for by_group in counts.values():
            by_group["all"] = by_group.total()
    content = published_numbers(benchmark.name)
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
    columns = ["count", benchmark.counted_by or "split", "published", "here"]
    return Table(f"{benchmark.title}: {config}", columns, lines)


def data_checks(benchmark: Benchmark) -> Reproduction:
    """Compare the published numbers of a benchmark's data with the output of ``qabench stats``."""
    reproduction = Reproduction()
    name, missing = benchmark.name, []
    content = published_numbers(name)
    for config in content.get("published", {}):
        splits, unavailable = available_splits(name, config)
        missing += unavailable
        differences = content.get("differences", {}).get(config, {})
        for figure, group, published, here in count_table(benchmark, config, splits).rows:
            if published is not None:
                is_known = differences.get(figure, {}).get(group) == here
                reason = content["reason"] if is_known else ""
                check = Check(f"{config}: {figure}: {group}", published, here, reason)
                reproduction.checks.append(check)
    if missing:
        reproduction.notes.append(
            f"Not computed, because the files are not available (see `qabench fetch {name}`): {', '.join(missing)}."
        )
    return reproduction


def available_splits(name: str, config: str) -> tuple[Json, list[str]]:
    """Return the rows of a config by split if the files are available, and the names of the other splits."""
    splits: Json = {}
    missing = []
    for split, files in dataset_table(name).config(config).splits.items():
        try:
            for file in files:
                open_path(name, file)
        except SourceError:
            missing.append(f"{config} {split}")
        else:
            splits[split] = load_dataset(name, config, split=split, streaming=True)
    return splits, missing
