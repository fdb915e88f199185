"""The rank of a score among the published scores of other systems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from qabench.benchmarks import benchmark
from qabench.data.sources import available
from qabench.errors import SourceError
from qabench.evaluation import Evaluation
from qabench.evaluation.evaluation import PREDICTIONS, Score
from qabench.evaluation.signature import parse
from qabench.loading_scripts import LEADERBOARD, dataset_table, source_table

if TYPE_CHECKING:
    from qabench.loading_scripts.published import PublishedScore


@cache
def published(name: str) -> list[PublishedScore]:
    """Return the published scores of a benchmark, in the order of the source.

    Raises:
        InputError: the benchmark does not exist.
        SourceError: the files with the scores are not available.
    """
    return benchmark(name).published()


def ranks(evaluation: Evaluation) -> dict[str, str]:
    """Return the rank of each score among published scores of the same setting and judge, in one sentence, by metric.

    The setting of a file of predictions is unknown, so it is ranked in each setting. Scores that are not official, and
    those to which no published score is comparable or available, have no rank.
    """
    scores = evaluation.scores()
    official = {name: score for name, score in scores.items() if not evaluation.deviations(score)}
    if not official or not is_local(evaluation.benchmark):
        return {}
    try:
        entries = published(evaluation.benchmark)
    except SourceError:  # a damaged file
        return {}
    sentences = {name: _rank(evaluation, score, entries) for name, score in official.items()}
    return {name: sentence for name, sentence in sentences.items() if sentence}


def _rank(evaluation: Evaluation, score: Score, published_scores: Sequence[PublishedScore]) -> str | None:
    scores = [entry for entry in published_scores if entry.metric == score.metric.name]
    line = evaluation.signatures.get(score.metric.family)
    judge = parse(line)[1].get("judge") if line else None
    scores = [entry for entry in scores if entry.judge in (None, judge)]
    if evaluation.setting != PREDICTIONS:
        scores = [entry for entry in scores if entry.setting in (None, evaluation.setting)]
    if not scores:
        return None
    by_setting: dict[str | None, list[PublishedScore]] = {}
    for entry in scores:
        by_setting.setdefault(entry.setting, []).append(entry)
    places = "; ".join(_place(score, entries, setting) for setting, entries in by_setting.items())
    configs = sorted({entry.config for entry in scores} - {evaluation.config})
    warning = (
        f". The published results are on {', '.join(configs)}, this one on {evaluation.config}: different questions"
        if configs
        else ""
    )
    return f"{score.metric.title} {score.interval.mean:.4f} ranks {places}{warning}."


def is_local(name: str) -> bool:
    """Return whether the published scores can be read without a download, which a report must not start."""
    config = dataset_table(name).configs.get(LEADERBOARD)
    return config is not None and all(available(source_table(name)[file]) for file in config.files)


def _place(score: Score, scores: Sequence[PublishedScore], setting: str | None) -> str:
    sign = 1 if score.metric.higher_is_better else -1
    better = [entry for entry in scores if sign * entry.value > sign * score.interval.mean]
    best = max(scores, key=lambda entry: sign * entry.value)
    where = f"{setting}, " if setting else ""
    where += f"judged by {best.judge}, " if best.judge else ""
    return f"{_ordinal(len(better) + 1)} of {len(scores) + 1} ({where}best published: {best.system} {best.value:.4f})"


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
