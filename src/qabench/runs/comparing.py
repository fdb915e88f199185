"""``qabench.compare``: systems on the same questions, from logs, files of predictions, or evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.comparison import CORRECTION, SEED, TEST, Comparison
from qabench.evaluation.comparison import compare as compare_evaluations
from qabench.evaluation.matching import common_scores, matched, unmatched
from qabench.evaluation.metric import pass_of
from qabench.evaluation.scoring import Progress
from qabench.evaluation.tables import labels
from qabench.runs.sources import read_evaluations
from qabench.stats import RESAMPLES

System = str | Path | Evaluation


def compare(
    name: str,
    config: str | None,
    systems: Sequence[System] | Mapping[str, System],
    metric: str | None = None,
    *,
    test: str = TEST,
    correction: str = CORRECTION,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    questions: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare systems on the same questions, as ``qabench compare`` does.

    Args:
        name: the benchmark, such as "fanoutqa".
        config: such as "dev"; None for the benchmark's default.
        systems: logs of runs, folders of logs, files of predictions, or evaluations; or these by
            label.
        metric: such as "acc.loose"; None for the benchmark's main metric.
        test: "randomization" or "bootstrap"; see ``qabench.stats``.
        correction: of p-values over the pairs: "holm", "bh" or "none".
        resamples: of intervals and tests.
        seed: of intervals and tests.
        questions: a file of questions in the benchmark's official format.
        progress: called with the number of units scored, and of all units.
        **options: options of the benchmark, as in ``qabench.evaluate_predictions``.

    Raises:
        InputError: an unknown name, fewer than two systems, one of them twice, or no system has the
            metric.
        SourceError: the benchmark's data is not available.
    """
    scorer = benchmark(name)
    chosen = scorer.metric(metric) if metric else None
    groups = [
        group for group in scorer.families if chosen and group in (chosen.family, chosen.name)
    ]
    given = list(systems.values()) if isinstance(systems, Mapping) else list(systems)
    file = None if questions is None else Path(questions)
    values = scorer.checked_options(options)
    of_samples = pass_of(metric or "")[1]
    found = read_evaluations(
        given,
        scorer.name,
        config,
        metrics=groups or None,
        questions=file,
        progress=progress,
        ks=[of_samples.k] if of_samples else (),
        **values,
    )
    evaluations = found.evaluations
    _check(evaluations)
    chosen = chosen or scorer.headline_metric(evaluations)
    if chosen is None:
        raise InputError(f"none of the systems has a score of {scorer.title}")
    names = list(systems) if isinstance(systems, Mapping) else labels(evaluations)
    if len(names) != len(evaluations):
        raise InputError(
            f"{len(names)} labels for {len(evaluations)} systems; give one log or file for each label"
        )
    by_label = dict(zip(names, evaluations, strict=True))
    comparison = compare_evaluations(
        by_label, chosen, test=test, correction=correction, resamples=resamples, seed=seed
    )
    if not comparison.systems:
        available = dict.fromkeys(
            score for evaluation in evaluations for score in evaluation.scores()
        )
        raise InputError(
            f"no system has the score {chosen.name}, which is undefined for these answers; choose another with "
            f"--metric: {', '.join(available)}"
        )
    unscored = [
        f"{label} has no score {chosen.name}"
        for label in by_label
        if label not in comparison.systems
    ]
    return replace(comparison, notes=(*found.notes, *unscored))


def compare_logs(
    paths: Sequence[str | Path], score: str | None = None, **testing: Any
) -> list[Comparison]:
    """Compare the systems in logs of one task by a score, or by each score that all of them have.

    Logs of a benchmark are compared as by ``compare``.

    Args:
        paths: logs of any task of Inspect, lm-evaluation-harness, lighteval or Every Eval Ever, or
            folders of them.
        score: its name; None for all common ones, or for the main score of a benchmark.
        **testing: test, correction, resamples and seed, as in ``compare``.

    Raises:
        InputError: fewer than two systems, one of them twice, no common score, or logs of several
            tasks.
    """
    of_samples = pass_of(score or "")[1]
    found = read_evaluations(paths, ks=[of_samples.k] if of_samples else ())
    evaluations = found.evaluations
    _check(evaluations)
    names = {evaluation.benchmark for evaluation in evaluations}
    if len(names) > 1:
        tasks = ", ".join(
            sorted(evaluation.benchmark or evaluation.config for evaluation in evaluations)
        )
        raise InputError(f"systems must be compared on the same questions; these are on {tasks}")
    if name := names.pop():
        return [compare(name, None, evaluations, score, **testing)]
    same = matched(evaluations)
    by_label = dict(zip(labels(evaluations), same, strict=True))
    notes = [*found.notes, *unmatched(list(by_label), same)]
    tasks_named = dict.fromkeys(evaluation.config for evaluation in evaluations)
    if len(tasks_named) > 1:
        notes.append(
            f"the logs are of several tasks with the same questions: {', '.join(tasks_named)}"
        )
    comparisons = [
        compare_evaluations(by_label, each, **testing) for each in common_scores(same, score)
    ]
    return [replace(comparison, notes=tuple(notes)) for comparison in comparisons]


def _check(evaluations: Sequence[Evaluation]) -> None:
    if len(evaluations) < 2:
        raise InputError(
            "nothing to compare: give at least two systems, such as: qabench compare BENCHMARK A.jsonl B.jsonl"
        )
    # a file can have several systems
    systems = [(each.path, each.model, each.config) for each in evaluations]
    if repeated := [system for system in systems if system[0] and systems.count(system) > 1]:
        raise InputError(f"the file was given twice: {repeated[0][0]}")
