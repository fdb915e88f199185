"""The benchmark, the config and the scores that a user asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qabench.benchmarks import Benchmark, benchmark
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.records import PREDICTIONS, column_names
from qabench.evaluation.score_spec import CUTOFF, Names, ScoreSpec, present, select_scores


def with_scores(evaluation: Evaluation, names: Names) -> Evaluation:
    """Return the evaluation with the named scores only, and their signatures. None keeps all.

    If a log lacks groups of scores that were asked for, they are added to its problems. Without
    ``names``, these are the groups that its run was asked for.
    """
    is_run = evaluation.setting != PREDICTIONS
    if names is None:
        # The scorer has already reported the groups that a file of predictions lacks.
        if not is_run:
            return evaluation
        return _with_missing_groups(evaluation, _asked_in_run(evaluation))
    title = evaluation.path or evaluation.config
    if evaluation.benchmark:
        title = benchmark(evaluation.benchmark).title
    specs = select_scores(evaluation.score_specs, names, title)
    # Only groups whose scores are all dropped lose their signature. Signatures of groups that never
    # had scores are kept.
    selected = {spec.group for spec in specs}
    dropped = {spec.group for spec in evaluation.score_specs} - selected
    signatures = {}
    for group, line in evaluation.signatures.items():
        if group not in dropped:
            signatures[group] = line
    if is_run:
        evaluation = _with_missing_groups(evaluation, specs)
    evaluation = _with_missing_cutoffs(evaluation, specs)
    return replace(evaluation, score_specs=specs, signatures=signatures)


def _with_missing_cutoffs(evaluation: Evaluation, specs: Sequence[ScoreSpec]) -> Evaluation:
    """Add a problem for each score that was asked for at a cutoff that was not computed.

    If no other score was asked for, these problems are the reason why nothing is scored, and are
    set as ``unscored``.
    """
    problems = cutoffs_not_computed(evaluation, specs)
    if len(problems) == len(specs):
        evaluation = replace(evaluation, unscored="; ".join(problems))
    elif problems:
        evaluation = replace(evaluation, problems=[*evaluation.problems, *problems])
    return evaluation


def cutoffs_not_computed(evaluation: Evaluation, specs: Sequence[ScoreSpec]) -> list[str]:
    """Say, for each score at a cutoff that was not computed, which cutoffs were computed."""
    if not evaluation.benchmark:
        return []
    # A score such as "mrr@k" declares a family: one score for every cutoff.
    declared = {spec.name: spec for spec in benchmark(evaluation.benchmark).scores}
    columns = column_names(evaluation.records)
    problems = []
    for spec in specs:
        stem, _, cutoff = spec.name.rpartition("@")
        family = declared.get(stem + CUTOFF)
        if spec.name in declared or family is None or present([spec], columns):
            continue
        if computed := [each.name for each in present([family], columns)]:
            problem = f"no score {spec.name}: computed is {', '.join(computed)}"
            if evaluation.setting == PREDICTIONS and "k" in evaluation.arguments:
                problem += f"; to compute it, add --k {cutoff}"
            problems.append(problem)
    return problems


def _asked_in_run(evaluation: Evaluation) -> list[ScoreSpec]:
    """Return the scores that the run was asked for, or [] if its arguments do not name them."""
    names = evaluation.arguments.get("scores")
    # A log of another program may have anything there.
    values = names if isinstance(names, list | tuple) else [names]
    texts = [value for value in values if isinstance(value, str)]
    if not evaluation.benchmark or not texts or len(texts) < len(values):
        return []
    try:
        return select_scores(evaluation.score_specs, texts, evaluation.benchmark)
    except InputError:
        # The run was made by a version of qabench that had other scores.
        return []


def _with_missing_groups(evaluation: Evaluation, specs: Sequence[ScoreSpec]) -> Evaluation:
    """Add a problem for each group of scores that was asked for and that the log lacks."""
    new = [text for text in not_in_log(evaluation, specs) if text not in evaluation.problems]
    if not new:
        return evaluation
    return replace(evaluation, problems=[*evaluation.problems, *new])


def not_in_log(evaluation: Evaluation, specs: Sequence[ScoreSpec]) -> list[str]:
    """Name the groups of scores that were asked for and are not in the log, one per sentence."""
    # For files of predictions, the scorer itself reports absent groups, with the reason.
    is_log = evaluation.benchmark and evaluation.setting != PREDICTIONS
    if not is_log or evaluation.unscored or not evaluation.answered:
        return []
    groups = benchmark(evaluation.benchmark).groups
    # A group is there if one of its scores is, even if this one was not asked for.
    all_specs = [*evaluation.score_specs, *specs]
    computed = {spec.group for spec in present(all_specs, column_names(evaluation.records))}
    # Several scores may belong to one group, which gets one sentence.
    lacking = dict.fromkeys(spec.group for spec in specs if spec.group not in computed)
    problems = []
    for group in lacking:
        about = groups[group].rstrip(".")
        problems.append(
            f"no scores of {group} ({about}): the run did not compute them (see `qabench run --scores`), "
            "or no answer has what they need"
        )
    return problems


def check_is_of(evaluation: Evaluation, required: Benchmark | None, config: str | None) -> None:
    """Raise InputError for the log of another benchmark or config. None allows all."""
    if required and evaluation.benchmark != required.name:
        raise InputError(
            f"{evaluation.path} is the log of a run of {evaluation.benchmark}, not of {required.name}"
        )
    if config and evaluation.config != config:
        raise InputError(
            f"{evaluation.path} is the log of a run of the config {evaluation.config}, not of {config}"
        )
