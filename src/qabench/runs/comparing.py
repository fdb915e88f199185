"""``qabench.compare``: systems on the same questions, from logs, predictions or evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.predictions import IN_MEMORY
from qabench.data.rows import grouped, natural_key
from qabench.errors import InputError, some, unknown_name
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.comparison import (
    CORRECTION,
    SEED,
    TEST,
    Comparison,
    check_testing,
    compare_groups,
)
from qabench.evaluation.comparison import compare as compare_evaluations
from qabench.evaluation.judged import corrected_pairs
from qabench.evaluation.labels import labels
from qabench.evaluation.matching import common_scores, matched, with_lower_better
from qabench.evaluation.notes import left_out_sentences
from qabench.evaluation.records import column_names
from qabench.evaluation.score_spec import (
    Names,
    Pass,
    ScoreSpec,
    present,
    select_scores,
    split_names,
)
from qabench.evaluation.scoring import Progress
from qabench.runs.clusters import clusters_named, with_clusters
from qabench.runs.epochs import with_same_names
from qabench.runs.human import Human, with_human
from qabench.runs.sources import read_evaluations
from qabench.stats import RESAMPLES

System = str | Path | Evaluation


def compare(
    name: str | Sequence[System] | Mapping[str, System] | None,
    config: str | None = None,
    systems: Sequence[System] | Mapping[str, System] | None = None,
    scores: Names = None,
    *,
    test: str = TEST,
    correction: str = CORRECTION,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    questions: str | Path | None = None,
    by: Sequence[str] = (),
    human: Human | None = None,
    cluster: str | None = None,
    lower_is_better: Sequence[str] = (),
    baseline: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare systems on the same questions, as ``qabench compare`` does.

    With several scores, the comparisons by all but the first are ``others`` of the result. Systems
    on several tasks are compared on each task that two of them have.

    Args:
        name: the benchmark, such as "fanoutqa". None for qabench's logs, which name it, and for
            logs of any other task in Inspect, lm-evaluation-harness, lighteval or Every Eval Ever.
            It can be left out: ``compare([first, second])`` takes evaluations and logs.
        config: the config's name, such as "dev". None for the benchmark's default.
        systems: logs of runs, folders of logs, files of predictions, or evaluations, or these by
            label.
        scores: names of scores or groups, such as "acc.loose". None for the benchmark's main score,
            or for all scores that the logs of another task have in common.
        test: "randomization" or "bootstrap". See ``qabench.stats``.
        correction: how p-values are corrected over the pairs: "holm", "bh" or "none".
        resamples: the number of resamples of intervals and tests.
        seed: the seed of intervals and tests.
        questions: a file of questions in the benchmark's official format.
        by: groupings, such as "domain": the systems are also compared on each group.
        human: human labels, with which a judge's scores and their differences are corrected. See
            ``qabench.evaluate_predictions``.
        cluster: a field of the questions of logs, or a grouping: intervals and tests treat the
            questions with the same value as one unit.
        lower_is_better: names of another task's scores for which lower values are better, such as
            error rates.
        baseline: the label of the system that all others are compared with. None for all pairs.
        progress: called with the number of units scored so far, and the number of all units.
        **options: options of the benchmark, as in ``qabench.evaluate_predictions``.

    Raises:
        InputError: an unknown name, fewer than two systems, a system that is given twice, systems
            without a common task, or scores that no system has.
        SourceError: the benchmark's data is not available.
    """
    if systems is None:
        if name is None or isinstance(name, str):
            raise InputError(
                "give the systems: compare([FIRST, SECOND]) for logs and evaluations, or compare(NAME, CONFIG, "
                "[FIRST, SECOND]) for files of predictions"
            )
        systems = name
        name = None
    if not isinstance(name, str | None):
        raise InputError("the systems are given twice: as the first argument and as systems")
    # Report wrong names before the answers are scored, because a judge may be paid.
    check_testing(test, correction)
    benchmark = benchmark_of(name or "")
    labels_of_user = None
    if isinstance(systems, Mapping):
        labels_of_user = list(systems)
        paths = list(systems.values())
    else:
        paths = list(systems)

    for position, system in enumerate(paths):
        if not isinstance(system, str | Path | Evaluation):
            raise InputError(
                f"system {position + 1} is a {type(system).__name__}; give a file, a log or an evaluation. "
                "qabench.evaluate_predictions returns the evaluation of predictions in memory"
            )

    # Read and score the systems.
    questions_file = None if questions is None else Path(questions)
    with clusters_named(cluster):
        read = read_evaluations(
            paths,
            benchmark,
            config,
            scores=scores,
            questions=questions_file,
            progress=progress,
            **benchmark.checked_options(options),
        )
    clustered = with_clusters(read.evaluations, cluster)
    evaluations, unused_labels = with_human(clustered, human)
    read.notes.extend(unused_labels)

    # Check everything before the tests, which take the longest.
    _check(evaluations, read.notes)
    # A folder of logs has several systems, but one label.
    if labels_of_user and len(labels_of_user) != len(evaluations):
        raise InputError(
            f"{len(labels_of_user)} labels for {len(evaluations)} systems; give one log or file for each label"
        )
    groupings: set[str] = set()
    for evaluation in evaluations:
        groupings.update(evaluation.groupings())
    for grouping in by:
        if grouping not in groupings:
            raise unknown_name("the questions have no grouping", grouping, sorted(groupings))
    evaluations = with_lower_better(evaluations, lower_is_better)
    testing: dict[str, Any] = {
        "test": test,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
        "baseline": baseline or "",
    }

    # Compare the systems on each task.
    notes = list(read.notes)
    comparisons: list[Comparison] = []
    for positions in _by_task(evaluations):
        task = [evaluations[position] for position in positions]
        if len(task) < 2:
            notes.append(f"{task[0].path} is left out: no other system is on {task[0].questions}")
            continue
        names = labels(task)
        if labels_of_user:
            names = [labels_of_user[position] for position in positions]
        compare_task = _compare_files if task[0].benchmark else _compare_logs
        comparison = _corrected(compare_task(names, task, scores, by, **testing))
        comparisons += [replace(comparison, others=()), *comparison.others]
        notes += comparison.notes
    first, *others = comparisons
    return replace(first, others=tuple(others), notes=tuple(notes))


def _by_task(evaluations: Sequence[Evaluation]) -> list[list[int]]:
    """Return the positions of the evaluations by task, or one list if all are compared together."""
    everything = list(range(len(evaluations)))
    by_questions = grouped((evaluations[position].questions, position) for position in everything)
    tasks = list(by_questions.values())
    if len(tasks) == 1 or all(len(positions) == 1 for positions in tasks):
        return [everything]
    if not any(evaluation.benchmark for evaluation in evaluations):
        try:
            common_scores(with_same_names(matched(evaluations)), None)
        except InputError:
            # Logs with different questions or scores are compared task by task.
            return tasks
        return [everything]
    return tasks


def _compare_files(
    names: Sequence[str],
    evaluations: Sequence[Evaluation],
    scores: Names,
    by: Sequence[str],
    **testing: Any,
) -> Comparison:
    """Compare systems on a config of a benchmark by some scores, or by its main score."""
    benchmark = benchmark_of(evaluations[0].benchmark)
    by_label = dict(zip(names, evaluations, strict=True))
    computed = []
    for spec in _chosen(benchmark, scores, evaluations):
        comparison = compare_evaluations(by_label, spec, **testing)
        if comparison.systems:
            computed.append(comparison)
    if not computed:
        raise InputError(_why_not_computed(by_label, scores))
    unscored = []
    for comparison in computed:
        for label in by_label:
            if label not in comparison.systems:
                unscored.append(f"{label} has no score {comparison.spec.name}")
    # A score may have no pair of systems: only systems with several samples have pass@k.
    shown = [comparison for comparison in computed if comparison.pairs]
    if not shown:
        raise InputError(_why_no_pairs(computed, unscored))
    specs = [comparison.spec for comparison in shown]
    groups, notes_of_groups = _by_groups(by_label, specs, by, **testing)
    return replace(shown[0], others=(*shown[1:], *groups), notes=(*unscored, *notes_of_groups))


def _by_groups(
    by_label: Mapping[str, Evaluation],
    specs: Sequence[ScoreSpec],
    by: Sequence[str],
    **testing: Any,
) -> tuple[list[Comparison], list[str]]:
    """Compare systems on each group of the groupings, with notes about groups without a pair."""
    comparisons = []
    notes = []
    for grouping in by:
        groups: dict[str, None] = {}
        for evaluation in by_label.values():
            groups |= dict.fromkeys(evaluation.by_group(grouping))
        for spec in specs:
            compared = compare_groups(by_label, spec, grouping, **testing)
            comparisons += compared
            without_pair = set(groups)
            for comparison in compared:
                if comparison.group:
                    without_pair.discard(comparison.group[1])
            if without_pair:
                missing = sorted(without_pair, key=natural_key)
                notes.append(
                    f"{spec.name} by {grouping}: fewer than two systems have a score for the same "
                    f"questions of {some(missing)}"
                )
    return comparisons, notes


def _corrected(comparison: Comparison) -> Comparison:
    """Return a comparison with the corrected differences of its systems, if there are labels."""
    corrections = {}
    for label, evaluation in comparison.evaluations.items():
        if evaluation.corrections:
            corrections[label] = evaluation.corrections
    if not corrections:
        return comparison
    return replace(comparison, corrected=tuple(corrected_pairs(corrections)))


def _why_not_computed(by_label: Mapping[str, Evaluation], scores: Names) -> str:
    """Return why no system has one of the chosen scores, and which ones there are."""
    named = "a score"
    if scores is not None:
        named = f"the scores {', '.join(split_names(scores))}"
    unanswered = [label for label, evaluation in by_label.items() if not evaluation.records]
    reasons = ""
    if unanswered:
        reasons = f" {', '.join(unanswered)}: no answers yet."
    available: set[str] = set()
    for label, evaluation in by_label.items():
        available.update(evaluation.scores())
        if evaluation.records and evaluation.unscored:
            reasons += f" {label}: {evaluation.unscored}."
    return (
        f"no system has {named}: undefined for these answers, or not computed.{reasons} "
        f"Choose others with --scores: {', '.join(sorted(available)) or 'none'}"
    )


def _why_no_pairs(comparisons: Sequence[Comparison], unscored: Sequence[str]) -> str:
    """Return why no two systems can be compared."""
    if all(len(comparison.systems) < 2 for comparison in comparisons):
        return f"nothing to compare: {'; '.join(unscored)}. `qabench score` says why"
    named = ", ".join(comparison.spec.name for comparison in comparisons)
    return (
        f"nothing to compare: no two systems have a score ({named}) for the same question; "
        "give systems with answers to the same questions"
    )


def _chosen(
    benchmark: Benchmark, names: Names, evaluations: Sequence[Evaluation]
) -> list[ScoreSpec]:
    """Return the named scores that any evaluation has, or by default the benchmark's main score."""
    if names is None:
        return list(filter(None, [benchmark.headline_score(evaluations)]))
    declared: dict[str, ScoreSpec] = {}
    records: list[Record] = []
    for evaluation in evaluations:
        records += evaluation.records
        for spec in evaluation.score_specs:
            declared[spec.name] = spec
    selected = select_scores(list(declared.values()), names, benchmark.title)
    columns = column_names(records)
    return present(selected, sorted(columns))


def _compare_logs(
    names: Sequence[str],
    evaluations: Sequence[Evaluation],
    scores: Names,
    by: Sequence[str],
    **testing: Any,
) -> Comparison:
    """Compare logs of another harness's task by some scores, or by all that they have in common."""
    same = _with_common_groups(with_same_names(matched(evaluations)))
    by_label = dict(zip(names, same, strict=True))
    notes = []
    tasks = dict.fromkeys(evaluation.config for evaluation in evaluations)
    if len(tasks) > 1:
        notes.append(f"the logs are of several tasks with the same questions: {', '.join(tasks)}")
    ids = []
    for evaluation in same:
        ids.append({record.id for record in evaluation.records})
    in_all_systems = set.intersection(*ids)
    in_some_systems = set[str]().union(*ids) - in_all_systems
    if in_some_systems:
        notes.append(f"questions that only some of the systems have: {len(in_some_systems)}")
    specs = common_scores(same, scores)
    if scores is None:
        notes += _not_in_common(by_label, specs)
    for label, evaluation in by_label.items():
        sentences = [*evaluation.notes, *left_out_sentences(evaluation, specs)]
        notes += [f"{label}: {sentence}" for sentence in sentences]
    # All logs have these scores, so none needs to be reported as absent.
    compared = [compare_evaluations(by_label, spec, **testing) for spec in specs]
    groups, notes_of_groups = _by_groups(by_label, specs, by, **testing)
    notes += notes_of_groups
    return replace(compared[0], others=(*compared[1:], *groups), notes=tuple(notes))


def _not_in_common(by_label: Mapping[str, Evaluation], compared: Sequence[ScoreSpec]) -> list[str]:
    """Say which scores are not compared because some logs do not have them."""
    common = {spec.name for spec in compared}
    with_score: dict[str, list[str]] = {}
    for label, evaluation in by_label.items():
        for spec in evaluation.score_specs:
            # A log with few samples has no pass@k for larger k, which a note of the log states
            # already.
            if spec.name not in common and not isinstance(spec.reducer, Pass):
                with_score.setdefault(spec.name, []).append(label)
    sentences = []
    for name, labels_with_score in with_score.items():
        without = [label for label in by_label if label not in labels_with_score]
        sentences.append(f"{name} is not compared: not in {', '.join(without)}")
    return sentences


def _with_common_groups(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations in which each question has the groups that any of the logs gives it.

    Harnesses record different fields of a question. Two systems can be compared on a group only if
    both logs have its questions in the group.
    """
    groups: dict[str, dict[str, Sequence[str]]] = {}
    for evaluation in evaluations:
        for record in evaluation.records:
            own = groups.setdefault(record.id, {})
            for grouping, members in record.groups.items():
                own.setdefault(grouping, members)
    regrouped = []
    for evaluation in evaluations:
        records = [replace(record, groups=groups[record.id]) for record in evaluation.records]
        regrouped.append(replace(evaluation, records=records))
    return regrouped


def _check(evaluations: Sequence[Evaluation], notes: Sequence[str]) -> None:
    """Raise InputError for too few or repeated systems, or benchmarks without common questions.

    Systems of several benchmarks are allowed if two of the systems are on the same questions.
    """
    if len(evaluations) < 2:
        sentence = "nothing to compare: give at least two systems, such as: qabench compare BENCHMARK A.jsonl B.jsonl"
        raise InputError(". ".join([sentence, *notes]))
    # One file may contain several systems, so a repeated path alone is allowed. Predictions in
    # memory have no path.
    systems = []
    for evaluation in evaluations:
        if not evaluation.path.startswith(IN_MEMORY):
            systems.append((evaluation.path, evaluation.model, evaluation.config))
    for system in systems:
        if systems.count(system) > 1:
            path = system[0]
            raise InputError(f"the file was given twice: {path}")
    questions = [evaluation.questions for evaluation in evaluations]
    has_several_benchmarks = len({evaluation.benchmark for evaluation in evaluations}) > 1
    if has_several_benchmarks and len(set(questions)) == len(questions):
        tasks = [evaluation.benchmark or evaluation.config for evaluation in evaluations]
        raise InputError(
            f"systems must be compared on the same questions; these are on {', '.join(sorted(tasks))}"
        )
