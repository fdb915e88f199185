"""Rank published scores together with the scores of evaluations, if they are comparable."""

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
    # Whether the Hub has verified the score. None if the score is not from the Hub.
    verified: bool | None = None
    # The notes of an entry on the Hub.
    notes: str = ""


def local_entries(name: str) -> list[RankedSystem]:
    """Return the published scores if they are on this machine, else []. Downloads nothing."""
    if not name:
        # Without a name, it is a task of another harness, which has no published scores.
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
        SourceError: the scores are not available.
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
    """Yield the scores of an evaluation that have these names.

    Args:
        evaluation: the evaluation of a run or of a file of predictions.
        names: the names of the scores.
        setting: the setting in which the predictions in a file were made, if it is known.
    """
    # ``setting`` is for files of predictions, because a run records its setting.
    if evaluation.setting != PREDICTIONS or not setting:
        setting = evaluation.setting
    for name, score in evaluation.scores().items():
        if name not in names:
            continue
        # Scores by different judges are not comparable, so they are ranked separately.
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


def ranked(entries: Sequence[RankedSystem], benchmark: Benchmark) -> list[RankedSystem]:
    """Return the entries sorted by metric, setting, config and judge, and then the best first.

    Equal scores have the same rank. Scores with deviations have no rank, and follow the others.
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
    for spec in benchmark.scores:
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
            # ``index`` gives equal scores the rank of the first one.
            rows.append(replace(entry, rank=1 + scores.index(entry.score)))
        if scores:
            rows += unranked
        else:
            # A group in which all scores deviate comes after all groups with a ranking.
            without_ranks += unranked
    return rows + without_ranks
