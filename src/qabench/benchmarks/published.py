"""Published scores: the ranks of a score among those of other systems, and both in one list.

Only comparable scores are ranked among each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

from qabench.benchmarks import Benchmark, benchmark
from qabench.data.sources import available
from qabench.errors import SourceError
from qabench.evaluation import Evaluation
from qabench.evaluation.evaluation import PREDICTIONS
from qabench.evaluation.metric import Metric
from qabench.evaluation.signature import parse
from qabench.loading_scripts import LEADERBOARD, dataset_table, source_table

if TYPE_CHECKING:
    from qabench.loading_scripts.published import PublishedScore


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


@cache
def published(name: str) -> list[PublishedScore]:
    """Return the published scores of a benchmark, in the order of the source.

    Raises:
        InputError: the benchmark does not exist.
        SourceError: the files with the scores are not available.
    """
    return benchmark(name).published()


def is_local(name: str) -> bool:
    """Return whether the published scores can be read without a download, which a report must not start."""
    config = dataset_table(name).configs.get(LEADERBOARD)
    return config is not None and all(available(source_table(name)[file]) for file in config.files)


def published_entries(name: str) -> list[Entry]:
    """Return the published scores of a benchmark. Raises SourceError if they are not available."""
    return [
        Entry(row.system, row.value, row.metric, row.config, row.setting or "", "published", row.judge or "")
        for row in published(name)
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


def ranks(evaluation: Evaluation) -> dict[str, str]:
    """Return the rank of each score among published scores of the same setting and judge, in one sentence, by metric.

    The setting of a file of predictions is unknown, so it is ranked in each setting. Scores that are not official, and
    those to which no published score is comparable or available, have no rank.
    """
    metrics = {name: score.metric for name, score in evaluation.scores().items() if not evaluation.deviations(score)}
    if not metrics or not is_local(evaluation.benchmark):
        return {}
    try:
        entries = published_entries(evaluation.benchmark)
    except SourceError:  # a damaged file
        return {}
    sentences = {own.metric: _rank(own, metrics[own.metric], entries) for own in own_entries(evaluation, list(metrics))}
    return {name: sentence for name, sentence in sentences.items() if sentence}


def _rank(own: Entry, metric: Metric, entries: Sequence[Entry]) -> str | None:
    by_setting: dict[str, list[Entry]] = {}
    for entry in entries:
        same_setting = own.setting == PREDICTIONS or entry.setting in ("", own.setting)
        if entry.metric == own.metric and entry.judge in ("", own.judge) and same_setting:
            by_setting.setdefault(entry.setting, []).append(entry)
    if not by_setting:
        return None
    places = "; ".join(_place(own.score, group, metric.higher_is_better) for group in by_setting.values())
    configs = sorted({entry.config for group in by_setting.values() for entry in group} - {own.config})
    warning = (
        f". The published results are on {', '.join(configs)}, this one on {own.config}: different questions"
        if configs
        else ""
    )
    return f"{metric.title} {own.score:.4f} ranks {places}{warning}."


def _place(score: float, entries: Sequence[Entry], higher_is_better: bool) -> str:
    sign = 1 if higher_is_better else -1
    place = 1 + sum(sign * entry.score > sign * score for entry in entries)
    best = max(entries, key=lambda entry: sign * entry.score)
    where = f"{best.setting}, " if best.setting else ""
    where += f"judged by {best.judge}, " if best.judge else ""
    suffix = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{suffix} of {len(entries) + 1} ({where}best published: {best.system} {best.score:.4f})"
