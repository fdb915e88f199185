"""Published scores and the scores of evaluations in one list, ranked.

Only comparable scores are ranked among each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter

from qabench.benchmarks import Benchmark, benchmark
from qabench.data.sources import available
from qabench.errors import SourceError
from qabench.evaluation import Evaluation
from qabench.evaluation.records import PREDICTIONS
from qabench.evaluation.signature import parse
from qabench.loading_scripts import LEADERBOARD, dataset_table


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
    # Whether the Hub has verified the score. None if it is not an entry of the Hub.
    verified: bool | None = None
    # The notes of the Hub's entry.
    notes: str = ""


def local_entries(name: str) -> list[RankedSystem]:
    """Return the published scores on this machine, or []: a report must not start a download."""
    if not name:
        # A task of another harness has no published scores.
        return []
    table = dataset_table(name)
    if LEADERBOARD not in table.configs:
        return []
    files = table.configs[LEADERBOARD].files
    with suppress(SourceError):
        if all(available(table.sources[file]) for file in files):
            return published_entries(name)
    return []


def published_entries(name: str) -> list[RankedSystem]:
    """Return the published scores of a benchmark.

    Raises:
        SourceError: they are not available.
    """
    entries = []
    for row in benchmark(name).numbers().published():
        setting, judge = row.setting or "", row.judge or ""
        entry = RankedSystem(
            row.system, row.value, row.metric, row.config, setting, "published", judge
        )
        entries.append(entry)
    return entries


def own_entries(
    evaluation: Evaluation, names: Sequence[str], setting: str | None = None
) -> Iterator[RankedSystem]:
    """Yield the scores of an evaluation by these metrics.

    Args:
        evaluation: the evaluation of a run or of a file of predictions.
        names: the metrics.
        setting: how the predictions in a file were made, if it is known.
    """
    # A run knows its setting. A file of predictions does not.
    if evaluation.setting != PREDICTIONS or not setting:
        setting = evaluation.setting
    for name, score in evaluation.scores().items():
        if name not in names:
            continue
        # Scores by different judges are not comparable, so the judge is a part of the ranking.
        judge = ""
        if line := evaluation.signatures.get(score.spec.group):
            _, fields = parse(line)
            judge = fields.get("judge", "")
        yield RankedSystem(
            evaluation.name,
            score.interval.mean,
            name,
            evaluation.config,
            setting,
            str(evaluation.path),
            judge,
            score.interval.low,
            score.interval.high,
            score.n,
            evaluation.deviations(score),
        )


def ranked(entries: Sequence[RankedSystem], scorer: Benchmark) -> list[RankedSystem]:
    """Return the entries by metric, setting, config and judge, the best first.

    Equal scores have the same rank. Deviating scores have none, and follow those with a rank.

    Published scores without a setting, such as fastbook's, are comparable to scores of every
    setting.
    """
    any_setting = set()
    for entry in entries:
        if not entry.setting:
            any_setting.add((entry.metric, entry.config))
    groups: dict[tuple[str, str, str, str], list[RankedSystem]] = {}
    for entry in entries:
        if (entry.metric, entry.config) in any_setting:
            entry = replace(entry, setting="")
        comparable = (entry.metric, entry.setting, entry.config, entry.judge)
        groups.setdefault(comparable, []).append(entry)
    lower_is_better = set()
    for spec in scorer.scores:
        if not spec.higher_is_better:
            lower_is_better.add(spec.name)
    rows: list[RankedSystem] = []
    without_ranks: list[RankedSystem] = []
    for group, members in sorted(groups.items()):
        metric = group[0]
        members.sort(key=attrgetter("score"), reverse=metric not in lower_is_better)
        scores: list[float] = []
        unranked: list[RankedSystem] = []
        for entry in members:
            if entry.deviations:
                unranked.append(replace(entry, rank=None))
                continue
            scores.append(entry.score)
            # Equal scores have the rank of the first of them.
            rows.append(replace(entry, rank=1 + scores.index(entry.score)))
        if scores:
            rows += unranked
        else:
            # A group in which all scores deviate comes after all groups with a ranking.
            without_ranks += unranked
    return rows + without_ranks
