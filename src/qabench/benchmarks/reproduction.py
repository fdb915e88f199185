"""Published scores and statistics, recomputed from public data and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from qabench.data.rows import Json
from qabench.errors import SourceError
from qabench.io.tables import Table
from qabench.loading import load_dataset
from qabench.loading_scripts import LEADERBOARD, dataset_table, open_path

HERE, PUBLISHED, PUBLISHED_SUFFIX = "here", "published", " (published)"
Kind = Literal["score", "statistic"]


@dataclass(frozen=True, slots=True)
class Check:
    """A number that was computed from public data, or could not be.

    Attributes:
        name: what it counts or measures, such as "FELM all: Segments by domain: science, segments".
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


Differences = Mapping[str, tuple[float, str]]
"""``Check.name`` -> the computed value if it is known to differ from the published one, and the reason."""


def data_checks(
    name: str,
    statistics: Callable[[str, Mapping[str, Any]], list[Table]],
    differences: Differences | None = None,
) -> Reproduction:
    """Compare the published statistics of a benchmark's data with the output of ``qabench stats``.

    Configs that are parts of the files of an earlier config are left out.

    Args:
        name: such as "felm".
        statistics: from a config and the rows of its splits to tables, such as
            ``Benchmark.statistics``.
        differences: explained differences. A value that is neither the published nor the expected
            one is unexplained.
    """
    reproduction = Reproduction()
    missing: list[str] = []
    for config in _configs(name):
        splits, unavailable = available_splits(name, config)
        missing += unavailable
        for table in statistics(config, splits) if splits else ():
            checks = _checks_of(table, f"{config}: {table.title}")
            reproduction.checks.extend(_explained(check, differences or {}) for check in checks)
    if missing:
        splits_named = ", ".join(missing)
        reproduction.notes.append(
            f"Not computed, because the files are not available (see `qabench fetch {name}`): {splits_named}."
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


def _configs(name: str) -> list[str]:
    """Return the configs with upstream files, without duplicate sets of files and without published scores."""
    first: dict[frozenset[str], str] = {}
    for config in dataset_table(name).configs.values():
        if config.files and config.name != LEADERBOARD:
            first.setdefault(frozenset(config.files), config.name)
    return list(first.values())


def _checks_of(table: Table, title: str) -> Iterator[Check]:
    for row in table.rows:
        values = dict(zip(table.columns, row, strict=True))
        for name, value in values.items():
            published = values.get(PUBLISHED if name == HERE else name + PUBLISHED_SUFFIX)
            if published is not None and isinstance(value, int | float):
                yield Check(
                    f"{title}: {row[0]}" + ("" if name == HERE else f", {name}"), published, value
                )


def _explained(check: Check, differences: Differences) -> Check:
    value, reason = differences.get(check.name, (None, ""))
    return (
        replace(check, explanation=reason)
        if check.computed == value and not check.agrees
        else check
    )
