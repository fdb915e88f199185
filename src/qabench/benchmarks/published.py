"""Published scores and the scores of evaluations in one list, ranked.

Only comparable scores are ranked among each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter

from qabench.benchmarks import Benchmark, benchmark
from qabench.data.rows import grouped
from qabench.data.sources import available
from qabench.errors import SourceError
from qabench.evaluation import Evaluation
from qabench.evaluation.records import PREDICTIONS
from qabench.evaluation.signature import parse
from qabench.loading_scripts import LEADERBOARD, dataset_table, source_table


@dataclass(frozen=True, slots=True)
class RankedSystem:
    """One score of one system."""

    system: str
    score: float
    metric: str
    config: str
    setting: str
    source: str
    judge: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    deviations: Sequence[str] = ()
    rank: int | None = None
    verified: bool | None = None  # by the Hub; None if it is not an entry of the Hub
    notes: str = ""  # of the Hub's entry


def local_entries(name: str) -> list[RankedSystem]:
    """Return the published scores of a benchmark if they can be read without a download, which a report must not start.

    Otherwise, and if a file is damaged, [].
    """
    config = dataset_table(name).configs.get(LEADERBOARD) if name else None
    with suppress(SourceError):
        if config and all(available(source_table(name)[file]) for file in config.files):
            return published_entries(name)
    return []


def published_entries(name: str) -> list[RankedSystem]:
    """Return the published scores of a benchmark. Raises SourceError if they are not available."""
    return [
        RankedSystem(
            row.system,
            row.value,
            row.metric,
            row.config,
            row.setting or "",
            "published",
            row.judge or "",
        )
        for row in benchmark(name).published()
    ]


def own_entries(
    evaluation: Evaluation, names: Sequence[str], setting: str | None = None
) -> Iterator[RankedSystem]:
    """Yield the scores of an evaluation by these metrics.

    ``setting`` is the setting of files of predictions.
    """
    if evaluation.setting != PREDICTIONS or not setting:
        setting = evaluation.setting
    for name, score in evaluation.scores().items():
        if name in names:
            line = evaluation.signatures.get(score.spec.group)
            yield RankedSystem(
                evaluation.model,
                score.interval.mean,
                name,
                evaluation.config,
                setting,
                str(evaluation.path),
                parse(line)[1].get("judge", "") if line else "",
                score.interval.low,
                score.interval.high,
                score.n,
                evaluation.deviations(score),
            )


def ranked(entries: Sequence[RankedSystem], scorer: Benchmark) -> list[RankedSystem]:
    """Return the entries by metric, setting, config and judge, the best first.

    Equal scores have the same rank, deviating scores have none.

    Published scores without a setting, such as fastbook's, are comparable to scores of every
    setting.
    """
    any_setting = {(entry.metric, entry.config) for entry in entries if not entry.setting}
    compared = [
        replace(each, setting="") if (each.metric, each.config) in any_setting else each
        for each in entries
    ]
    comparable = attrgetter("metric", "setting", "config", "judge")
    groups = grouped((comparable(entry), entry) for entry in compared)
    lower = {spec.name for spec in scorer.scores if not spec.higher_is_better}
    rows = []
    for group, members in sorted(groups.items()):
        members.sort(key=attrgetter("score"), reverse=group[0] not in lower)
        official = [entry.score for entry in members if not entry.deviations]
        rows += [
            replace(entry, rank=None if entry.deviations else 1 + official.index(entry.score))
            for entry in members
        ]
    return rows
