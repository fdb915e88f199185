"""Files of predictions: join them to the questions, score them, and return an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import Any

from qabench.adapters.identity import identified
from qabench.benchmarks.base import Benchmark
from qabench.data.joining import (
    NO_PREDICTION,
    SYSTEM,
    UNUSABLE,
    UNUSABLE_PREDICTIONS,
    by_system,
    mixed_systems,
)
from qabench.data.predictions import Prediction, Predictions
from qabench.data.rows import without_none
from qabench.errors import InputError, some
from qabench.evaluation import MISSING, Evaluation, Message, Record
from qabench.evaluation.matching import as_samples
from qabench.evaluation.records import PREDICTIONS
from qabench.evaluation.score_spec import present
from qabench.evaluation.scoring import (
    Item,
    Outcome,
    Progress,
    Question,
    Questions,
    Scorer,
    outcomes_of,
)
from qabench.evaluation.signature import asked_field, with_fields


def evaluate(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    groups: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Evaluation:
    """Score a file of predictions. ``qabench.evaluate_predictions`` checks the arguments.

    A question without a prediction is an item without fields, which the benchmark's scorer scores
    as its authors do.

    Raises:
        InputError: an unknown config, or no prediction belongs to it.
        SourceError: the data is not available.
    """
    loaded, options = _load(benchmark, config, questions, predictions, options)
    return _evaluate(benchmark, loaded, predictions, groups, progress, options)


def evaluate_systems(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    groups: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Evaluation]:
    """Score each system in a file of predictions separately, with all its samples.

    See ``evaluate`` for the arguments, and ``by_system`` for how systems and samples are told
    apart. A system without a prediction for these questions is left out, and named as a problem of
    the others. A prediction whose question has another text than the question with its id is an
    error (see ``identified``).
    """
    loaded, options = _load(benchmark, config, questions, predictions, options)
    predictions, notes = identified(benchmark, loaded, predictions, questions)
    systems = by_system(predictions, all_are_samples=loaded.are_lines)
    ids = {question.id for question in loaded.rows}
    evaluations, left_out = [], []
    for system, samples in systems.items():
        usable: list[Predictions] = []
        # The rows of samples without a prediction for any of these questions.
        stray_rows: list[Prediction] = []
        for sample in samples:
            if any(row.id in ids for row in sample.rows):
                usable.append(sample)
            else:
                stray_rows += sample.rows
        if not usable:
            left_out.append(system or predictions.system)
            continue
        # The first sample then reports them among its unknown ids.
        usable[0] = replace(usable[0], rows=[*usable[0].rows, *stray_rows])
        scored = []
        for sample in usable:
            scored.append(_evaluate(benchmark, loaded, sample, groups, progress, options))
        evaluations.append(_named(scored, predictions, system, len(systems) > 1))
    if not evaluations:
        # No prediction belongs to one of the questions, so this raises an error.
        evaluations = [_evaluate(benchmark, loaded, predictions, groups, progress, options)]
    problems = []
    if left_out:
        problems.append(
            f"systems without a prediction for these questions: {len(left_out)} ({some(left_out)})"
        )
    if mixed := mixed_systems(predictions):
        named = some([name or "none" for name in mixed])
        notes = [
            *notes,
            f"lines of {len(mixed)} systems are scored as one, because no question has several: {named}",
        ]
    completed = []
    for evaluation in evaluations:
        all_notes = [*notes, *evaluation.notes]
        all_problems = [*evaluation.problems, *problems]
        completed.append(replace(evaluation, notes=all_notes, problems=all_problems))
    return completed


def _named(
    samples: Sequence[Evaluation], predictions: Predictions, system: str, is_one_of_several: bool
) -> Evaluation:
    """Return the evaluations of a system's samples as one, with the name of the system."""
    name = system or predictions.system
    path = predictions.path
    arguments = dict(samples[0].arguments)
    if is_one_of_several:
        path = f"{predictions.path} ({name})"
        arguments[SYSTEM] = name
    if len(samples) == 1:
        return replace(samples[0], model=name, path=path, arguments=arguments)
    numbered = []
    for number, sample in enumerate(samples, start=1):
        # ``as_samples`` refuses equal paths, which would be a file that was given twice.
        numbered.append(replace(sample, path=f"sample {number}"))
    return replace(as_samples(numbered), model=name, path=path, arguments=arguments)


def _load(
    benchmark: Benchmark,
    config: str | None,
    questions: Path | None,
    predictions: Predictions,
    options: Mapping[str, Any],
) -> tuple[Questions, dict[str, Any]]:
    """Return the questions, and the options that remain for scoring."""
    scoring = dict(options)
    loading = {}
    for option in benchmark.options:
        if option.method == "load":
            loading[option.name] = scoring.pop(option.name, None)
    return benchmark.load_for(predictions, config, questions, **loading), scoring


def _evaluate(
    benchmark: Benchmark,
    loaded: Questions,
    predictions: Predictions,
    groups: Sequence[str] | None,
    progress: Progress | None,
    options: Mapping[str, Any],
) -> Evaluation:
    """Score the predictions of one system for loaded questions. See ``evaluate``."""
    # Join the predictions to the questions.
    computed = groups or benchmark.groups_of(loaded, predictions)
    # The join decides which questions count, and in which order. The last digit of a mean depends on it.
    joined = benchmark.join(loaded, predictions, computed, options)
    scorer = benchmark.scorer(computed, **options)
    by_id = {question.id: question for question in loaded.rows}
    rows = [by_id[id] for id in joined.ids]
    items = []
    for question, prediction in zip(rows, joined.rows, strict=True):
        fields = prediction.fields if prediction else None
        items.append(Item(question.row, fields))

    # Score them.
    outcomes = outcomes_of(scorer, items, benchmark.name, joined.ids, progress)
    signatures = scorer.signatures(items, {"benchmark": benchmark.name, **loaded.fields})
    results = list(zip(rows, joined.rows, outcomes, strict=True))
    unusable = _unusable_problems(results)
    _check_computed(scorer, groups, signatures, predictions.path, unusable)

    # Describe how they were scored.
    arguments = _arguments(benchmark, options)
    if loaded.split is not None:
        arguments["split"] = loaded.split
    # A dict serves as an ordered set.
    columns: dict[str, None] = {}
    for outcome in outcomes:
        columns |= dict.fromkeys(outcome.scores)
    lacking = scorer.needs.keys() - signatures.keys()
    asked = asked_field(joined.ids)
    # Scores over some of the questions must not pass for scores over all, so the ids are signed.
    signed = {group: with_fields(line, asked=asked) for group, line in signatures.items()}
    return Evaluation(
        path=predictions.path,
        task=PREDICTIONS,
        config=loaded.config,
        setting=PREDICTIONS,
        model=predictions.system,
        created=predictions.created,
        status="success",
        records=list(starmap(_record, results)),
        signatures=signed,
        expected=len(results),
        available=len(loaded.rows),
        unscored=None if columns else _why_unscored(outcomes),
        arguments=arguments,
        problems=[
            *joined.problems,
            *_group_problems(benchmark, computed, scorer),
            *_field_problems(results),
            *unusable,
            *absent_score_problems(benchmark, set(computed) - lacking, columns, scorer.notes),
            *scorer.problems,
            *_option_problems(benchmark, options, computed, joined.rows),
        ],
        notes=scorer.notes,
        **benchmark.scoring(),
    )


def _why_unscored(outcomes: Sequence[Outcome]) -> str | None:
    """Return the first explanation among outcomes without scores, or None if there is none."""
    return next((outcome.explanation for outcome in outcomes if outcome.explanation), None)


def _option_problems(
    benchmark: Benchmark,
    options: Mapping[str, Any],
    groups: Sequence[str],
    predictions: Sequence[Prediction | None],
) -> list[str]:
    """Name the options that affect none of the computed groups, or whose fields no prediction has."""
    problems = []
    for option in benchmark.options:
        if options.get(option.name) in (None, option.default):
            continue
        reason = None
        if option.groups and set(option.groups).isdisjoint(groups):
            reason = f"no scores of {' or '.join(option.groups)} are computed"
        elif option.fields and not _have_field(predictions, option.fields):
            reason = f"no prediction has {' or '.join(option.fields)}"
        if reason:
            problems.append(f"the option {option.name} has no effect: {reason}")
    return problems


def _have_field(predictions: Sequence[Prediction | None], names: Sequence[str]) -> bool:
    for prediction in predictions:
        if prediction and any(prediction.fields.get(name) is not None for name in names):
            return True
    return False


def _group_problems(benchmark: Benchmark, groups: Sequence[str], scorer: Scorer) -> list[str]:
    """Say why default groups are not scored, because no prediction has what they need."""
    if not set(benchmark.default_groups).isdisjoint(groups):
        return []
    problems = []
    for group in benchmark.default_groups:
        if group in scorer.needs:
            problems.append(f"no scores of {group}: {scorer.needs[group]}")
    return problems


def _field_problems(results: Sequence[tuple[Question, Prediction | None, Outcome]]) -> list[str]:
    """Count the answered predictions that have nothing for a group of scores, by group."""
    by_group: dict[str, list[str]] = {}
    for _, prediction, outcome in results:
        for group, status in outcome.statuses.items():
            if prediction and status == MISSING:
                by_group.setdefault(group, []).append(str(prediction))
    problems = []
    for group, lacking in by_group.items():
        problems.append(
            f"predictions without anything for {group}: {len(lacking)} ({some(lacking)})"
        )
    return problems


def _check_computed(
    scorer: Scorer,
    groups: Sequence[str] | None,
    signatures: Mapping[str, str],
    path: str,
    unusable: Sequence[str],
) -> None:
    """Check that the groups that were asked for, or any by default, could be computed.

    Raises:
        InputError: they could not. The ``unusable`` predictions, which it names, may be the reason.
    """
    absent = []
    for name in groups or ():
        if name in scorer.needs and name not in signatures:
            absent.append(name)
    if absent:
        reasons = "; ".join([*unusable, scorer.needs[absent[0]]])
        raise InputError(f"{', '.join(absent)} cannot be computed: {reasons}")
    if scorer.needs and not signatures:
        reasons = "; ".join([*unusable, next(iter(scorer.needs.values()))])
        raise InputError(f"nothing to score in {path}: {reasons}")


def absent_score_problems(
    benchmark: Benchmark, groups: Iterable[str], columns: Iterable[str], notes: Sequence[str]
) -> list[str]:
    """Name the declared scores of these groups that no answer has the numbers for.

    Partial scores may be absent. If there are no numbers at all, another message gives the reason.
    If a whole group is absent, the scorer's notes can say why, such as a judge without a key.
    """
    returned = list(columns)
    computed = {spec.group for spec in present(benchmark.scores, returned)}
    expected = computed.intersection(groups) if notes else groups
    # Unreadable replies are reported on their own, so scores over readable replies may be absent.
    of_readable = {spec.readable for spec in benchmark.scores}
    names = []
    for spec in benchmark.scores:
        may_lack = spec.partial or spec.name in of_readable
        if spec.group in expected and not may_lack and not present([spec], returned):
            names.append(spec.name)
    if not returned or not names:
        return []
    return [
        f"{benchmark.title} scores that no answer has: {', '.join(names)}; the answers have only: "
        f"{', '.join(returned)}"
    ]


def _arguments(benchmark: Benchmark, options: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {}
    for option in benchmark.options:
        if option.method == "scorer" and not option.secret:
            arguments[option.name] = options.get(option.name, option.default)
    return without_none(arguments)


def _unusable_problems(results: Sequence[tuple[Question, Prediction | None, Outcome]]) -> list[str]:
    """Count the predictions that cannot be used, with their lines and reasons."""
    named = []
    for _, prediction, outcome in results:
        if prediction and not outcome.usable:
            named.append(f"{prediction.id} (line {prediction.line}): {outcome.problem}")
    if not named:
        return []
    return [f"{UNUSABLE_PREDICTIONS}: {len(named)} ({some(named)})"]


def _record(question: Question, prediction: Prediction | None, outcome: Outcome) -> Record:
    texts: Sequence[str] = ()
    if outcome.texts is not None:
        texts = outcome.texts
    elif outcome.answer is not None:
        texts = [outcome.answer]
    status, problem = outcome.status, outcome.problem
    if prediction is None:
        status, problem = MISSING, NO_PREDICTION
    elif not outcome.usable:
        problem = f"{UNUSABLE}: {problem}"
    return Record(
        id=question.id,
        epoch=1,
        question=question.text,
        reference=question.reference,
        messages=[Message("assistant", text) for text in texts],
        answer=outcome.answer,
        status=status,
        problem=problem,
        scores=outcome.scores,
        groups=question.groups,
        detail=outcome.detail,
        statuses=outcome.statuses,
    )
