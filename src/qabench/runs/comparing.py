"""``qabench.compare``: systems on the same questions, from logs, files of predictions, or evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark, benchmark
from qabench.errors import InputError, unknown_name
from qabench.evaluation import Evaluation
from qabench.evaluation.comparison import CORRECTION, SEED, TEST, Comparison, compare_groups
from qabench.evaluation.comparison import compare as compare_evaluations
from qabench.evaluation.evaluation import labels
from qabench.evaluation.matching import common_scores, matched
from qabench.evaluation.records import column_names
from qabench.evaluation.score_spec import Names, ScoreSpec, present, select_scores, split_names
from qabench.evaluation.scoring import Progress
from qabench.runs.aggregates import with_same_names
from qabench.runs.sources import read_evaluations
from qabench.stats import RESAMPLES

System = str | Path | Evaluation


def compare(
    name: str | None,
    config: str | None,
    systems: Sequence[System] | Mapping[str, System],
    scores: Names = None,
    *,
    test: str = TEST,
    correction: str = CORRECTION,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    questions: str | Path | None = None,
    by: Sequence[str] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare systems on the same questions, as ``qabench compare`` does.

    With several scores, the comparisons by all but the first are ``others`` of the result.

    Args:
        name: the benchmark, such as "fanoutqa". None for logs, which name it, and for logs of any
            task of Inspect, lm-evaluation-harness, lighteval or Every Eval Ever.
        config: such as "dev". None for the benchmark's default.
        systems: logs of runs, folders of logs, files of predictions, or evaluations, or these by
            label.
        scores: names of scores or groups, such as "acc.loose". None for the benchmark's main score,
            or for all scores that the logs of another task have in common.
        test: "randomization" or "bootstrap". See ``qabench.stats``.
        correction: of p-values over the pairs: "holm", "bh" or "none".
        resamples: of intervals and tests.
        seed: of intervals and tests.
        questions: a file of questions in the benchmark's official format.
        by: groupings, such as "domain": the systems are also compared on each group.
        progress: called with the number of units scored, and of all units.
        **options: options of the benchmark, as in ``qabench.evaluate_predictions``.

    Raises:
        InputError: an unknown name, fewer than two systems, one of them twice, several tasks, or no
            system has the scores.
        SourceError: the benchmark's data is not available.
    """
    scorer = benchmark(name or "")
    read = read_evaluations(
        list(systems.values()) if isinstance(systems, Mapping) else list(systems),
        scorer.name or None,
        config,
        scores=scores,
        questions=None if questions is None else Path(questions),
        progress=progress,
        **scorer.checked_options(options),
    )
    evaluations = read.evaluations
    _check(evaluations, read.notes)
    names = list(systems) if isinstance(systems, Mapping) else labels(evaluations)
    if len(names) != len(evaluations):
        raise InputError(
            f"{len(names)} labels for {len(evaluations)} systems; give one log or file for each label"
        )
    testing: dict[str, Any] = {
        "test": test,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
    }
    scorer = benchmark(evaluations[0].benchmark)
    groupings = {name for evaluation in evaluations for name in evaluation.groupings()}
    if unknown := [name for name in by if name not in groupings]:
        raise unknown_name("the questions have no grouping", unknown[0], sorted(groupings))
    if not scorer.name:
        comparison = _compare_logs(names, evaluations, scores, by, **testing)
        return replace(comparison, notes=(*read.notes, *comparison.notes))
    by_label = dict(zip(names, evaluations, strict=True))
    comparisons = [
        compare_evaluations(by_label, spec, **testing) for spec in _chosen(scorer, scores, evaluations)
    ]
    computed = [comparison for comparison in comparisons if comparison.systems]
    if not computed:
        available = {score for evaluation in evaluations for score in evaluation.scores()}
        named = "a score" if scores is None else f"the scores {', '.join(split_names(scores))}"
        raise InputError(
            f"no system has {named}: undefined for these answers, or not computed. "
            f"Choose others with --scores: {', '.join(sorted(available)) or 'none'}"
        )
    unscored = [
        f"{label} has no score {comparison.spec.name}"
        for comparison in computed
        for label in by_label
        if label not in comparison.systems
    ]
    # Without a pair there is nothing to compare: one system has several samples, and pass@k.
    shown = [comparison for comparison in computed if comparison.pairs]
    if not shown:
        raise InputError(_why_no_pairs(computed, unscored))
    groups = [
        each
        for grouping in by
        for comparison in shown
        for each in compare_groups(by_label, comparison.spec, grouping, **testing)
    ]
    return replace(shown[0], others=(*shown[1:], *groups), notes=(*read.notes, *unscored))


def _why_no_pairs(comparisons: Sequence[Comparison], unscored: Sequence[str]) -> str:
    """Return why no two systems can be compared."""
    if all(len(comparison.systems) < 2 for comparison in comparisons):
        return f"nothing to compare: {'; '.join(unscored)}. `qabench score` says why"
    named = ", ".join(comparison.spec.name for comparison in comparisons)
    return (
        f"nothing to compare: no two systems have a score ({named}) for the same question; "
        "give systems with answers to the same questions"
    )


def _chosen(scorer: Benchmark, names: Names, evaluations: Sequence[Evaluation]) -> list[ScoreSpec]:
    """Return the named scores that an evaluation has the columns of.

    Without names, it is the main score.
    """
    if names is None:
        return list(filter(None, [scorer.headline_score(evaluations)]))
    declared = {spec.name: spec for each in evaluations for spec in each.score_specs}
    selected = select_scores(list(declared.values()), names, scorer.title)
    columns = column_names(record for each in evaluations for record in each.records)
    return present(selected, sorted(columns))


def _compare_logs(
    names: Sequence[str],
    evaluations: Sequence[Evaluation],
    scores: Names,
    by: Sequence[str],
    **testing: Any,
) -> Comparison:
    """Compare logs of a task of another harness by some scores, or by each score that all of them have."""
    same = _with_common_groups(with_same_names(matched(evaluations)))
    by_label = dict(zip(names, same, strict=True))
    notes = []
    tasks = dict.fromkeys(evaluation.config for evaluation in evaluations)
    if len(tasks) > 1:
        notes.append(f"the logs are of several tasks with the same questions: {', '.join(tasks)}")
    ids = [{record.id for record in each.records} for each in same]
    if partial := len(set().union(*ids)) - len(set.intersection(*ids)):
        notes.append(f"questions that only some of the systems have: {partial}")
    specs = common_scores(same, scores)
    for label, evaluation in by_label.items():
        sentences = [*evaluation.notes, *evaluation.left_out_sentences(specs)]
        notes += [f"{label}: {sentence}" for sentence in sentences]
    compared = [compare_evaluations(by_label, spec, **testing) for spec in specs]
    groups = [
        each
        for grouping in by
        for spec in specs
        for each in compare_groups(by_label, spec, grouping, **testing)
    ]
    return replace(compared[0], others=(*compared[1:], *groups), notes=tuple(notes))


def _with_common_groups(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return logs in which a question is in the groups that any of them has for it.

    Harnesses keep different fields of a question, and a group without a question has no pair.
    """
    groups: dict[str, dict[str, Sequence[str]]] = {}
    for evaluation in evaluations:
        for record in evaluation.records:
            own = groups.setdefault(record.id, {})
            for grouping, members in record.groups.items():
                own.setdefault(grouping, members)
    return [
        replace(each, records=[replace(record, groups=groups[record.id]) for record in each.records])
        for each in evaluations
    ]


def _check(evaluations: Sequence[Evaluation], notes: Sequence[str]) -> None:
    if len(evaluations) < 2:
        left_out = "".join(f". {note}" for note in notes)
        raise InputError(
            "nothing to compare: give at least two systems, such as: qabench compare BENCHMARK A.jsonl B.jsonl"
            + left_out
        )
    # a file can have several systems
    systems = [(each.path, each.model, each.config) for each in evaluations]
    if repeated := [system for system in systems if system[0] and systems.count(system) > 1]:
        raise InputError(f"the file was given twice: {repeated[0][0]}")
    if len({each.benchmark for each in evaluations}) > 1:
        tasks = ", ".join(sorted(each.benchmark or each.config for each in evaluations))
        raise InputError(f"systems must be compared on the same questions; these are on {tasks}")
