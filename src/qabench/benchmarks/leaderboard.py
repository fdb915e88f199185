"""Leaderboards: published scores and evaluations in one list, ranked only among comparable scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from qabench.benchmarks import Benchmark
from qabench.benchmarks.published import published
from qabench.evaluation import Evaluation
from qabench.evaluation.evaluation import PREDICTIONS
from qabench.evaluation.signature import parse


@dataclass(frozen=True, slots=True)
class Entry:
    """One score of one system; entries with the same ``group`` are ranked among each other."""

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
    deviations: tuple[str, ...] = ()
    rank: int | None = None

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Return what scores must have in common to be comparable."""
        return self.metric, self.setting, self.config, self.judge


def published_entries(scorer: Benchmark) -> list[Entry]:
    """Return the published scores of a benchmark. Raises SourceError if they are not available."""
    return [
        Entry(row.system, row.value, row.metric, row.config, row.setting or "", "published", row.judge or "")
        for row in published(scorer.name)
    ]


def own_entries(evaluation: Evaluation, names: Sequence[str], setting: str | None = None) -> Iterator[Entry]:
    """Yield the scores of an evaluation by these metrics; ``setting`` is that of files of predictions."""
    for name, score in evaluation.scores().items():
        if name in names:
            line = evaluation.signatures.get(score.metric.family)
            interval = score.interval
            yield Entry(
                evaluation.model,
                interval.mean,
                name,
                evaluation.config,
                setting if setting and evaluation.setting == PREDICTIONS else evaluation.setting,
                str(evaluation.path),
                (parse(line)[1].get("judge") or "") if line else "",
                interval.low,
                interval.high,
                score.n,
                tuple(evaluation.deviations(score)),
            )


def ranked(entries: Iterable[Entry], scorer: Benchmark) -> list[Entry]:
    """Return the entries by group, the best first; equal scores have the same rank, deviating scores have none."""
    groups: dict[tuple[str, str, str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.group, []).append(entry)
    lower = {metric.name for metric in scorer.metrics if not metric.higher_is_better}
    rows = []
    for group, members in sorted(groups.items()):
        members.sort(key=attrgetter("score"), reverse=group[0] not in lower)
        official = [entry.score for entry in members if not entry.deviations]
        rows += [
            replace(entry, rank=None if entry.deviations else 1 + official.index(entry.score)) for entry in members
        ]
    return rows
