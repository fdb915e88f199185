"""Numbers about a benchmark's data: counts, published numbers, and their comparison."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol

from qabench.benchmarks.reproduction import (
    Check,
    Reproduction,
    available_splits,
    published_numbers,
)
from qabench.data.rows import Row, Splits
from qabench.evaluation.score_spec import ScoreSpec
from qabench.io.tables import Table
from qabench.loading_scripts import LEADERBOARD, dataset_table
from qabench.loading_scripts.published import PublishedScore, published_table, shipped_scores


class BenchmarkOfNumbers(Protocol):
    """The attributes of a benchmark that ``Numbers`` uses."""

    name: ClassVar[str]

    def score_spec(self, name: str) -> ScoreSpec:
        """Return the score with this name."""
        ...


class Numbers:
    """Computes numbers about a benchmark's data. A subclass defines what is counted in a row.

    Attributes:
        benchmark: the benchmark.
        counted_by: the column whose values group the counts of ``qabench stats``. If the rows do
            not have this column, they are grouped by split.
    """

    counted_by: ClassVar[str] = ""

    def __init__(self, benchmark: BenchmarkOfNumbers) -> None:
        self.benchmark = benchmark

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``, by default one row."""
        return {"rows": 1}

    def published(self) -> list[PublishedScore]:
        """Return the published scores, by default those of the dataset's ``leaderboard.json``."""
        return shipped_scores(self.benchmark.name)

    def tables(self, config: str, splits: Splits) -> list[Table]:
        """Return the tables of ``qabench stats`` for the rows of a config's splits.

        For the config ``leaderboard``, this is the table of the published main scores. For other
        configs, it is the table of the sums of ``counts``.
        """
        if config != LEADERBOARD:
            return [self.count_table(config, splits)]
        main_scores = []
        for score in self.published():
            if self.benchmark.score_spec(score.metric).main:
                main_scores.append(score)
        return [published_table(main_scores)]

    def count_table(self, config: str, splits: Splits) -> Table:
        """Return the sums of ``counts`` by group, next to the published numbers."""
        counts = self._sums(splits)
        # If there is only one group, the group "all" would repeat it.
        if len(set().union(*counts.values())) > 1:
            for by_group in counts.values():
                by_group["all"] = by_group.total()
        content = published_numbers(self.benchmark.name)
        figures: dict[str, Mapping[str, float]] = dict(counts)
        for figure, (total, number) in content.get("means", {}).items():
            if total not in counts:
                continue
            means = {}
            for group, n in counts[number].items():
                means[group] = round(counts[total][group] / n, 6)
            figures[figure] = means
        published = content.get("published", {}).get(config, {})
        lines = []
        for figure, numbers in figures.items():
            for group, number in numbers.items():
                lines.append([figure, group, published.get(figure, {}).get(group), number])
        columns = ["count", self.counted_by or "split", "published", "here"]
        title = dataset_table(self.benchmark.name).title
        return Table(f"{title}: {config}", columns, lines)

    def _sums(self, splits: Mapping[str, Iterable[Row]]) -> dict[str, Counter[str]]:
        """Return the sums of ``counts`` by figure and group."""
        sums: dict[str, Counter[str]] = defaultdict(Counter)
        for split, rows in splits.items():
            for row in rows:
                group = str(row.get(self.counted_by, split))
                for figure, number in self.counts(row).items():
                    sums[figure][group] += number
        return sums

    def reproduce(self) -> Reproduction:
        """Recompute the published numbers of the data, and compare them."""
        name = self.benchmark.name
        reproduction = Reproduction()
        missing = []
        content = published_numbers(name)
        for config in content.get("published", {}):
            splits = available_splits(name, config)
            all_splits = dataset_table(name).config(config).splits
            for split in all_splits:
                if split not in splits:
                    missing.append(f"{config} {split}")
            differences = content.get("differences", {}).get(config, {})
            for figure, group, published, here in self.count_table(config, splits).rows:
                if published is not None:
                    # The reason is only shown for the known difference: if the number changes
                    # again, the reason may be another one.
                    reason = ""
                    if differences.get(figure, {}).get(group) == here:
                        reason = content["reason"]
                    check = Check(f"{config}: {figure}: {group}", published, here, reason)
                    reproduction.checks.append(check)
        if missing:
            reproduction.notes.append(
                "Not computed, because the files are not available "
                f"(see `qabench fetch {name}`): {', '.join(missing)}."
            )
        return reproduction
