"""Files of predictions: join them to the questions, score them, and return an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.adapters.identity import identified
from qabench.benchmarks.base import Benchmark
from qabench.data.predictions import NO_PREDICTION, SYSTEM, Prediction, Predictions, by_system, some
from qabench.data.rows import without_none
from qabench.errors import InputError
from qabench.evaluation import MISSING, Evaluation, Message, Record
from qabench.evaluation.matching import as_samples
from qabench.evaluation.records import PREDICTIONS
from qabench.evaluation.score_spec import present
from qabench.evaluation.scoring import Item, Outcome, Progress, Question, Questions, Scorer, outcomes_of
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
    """Score a file of predictions.

    See ``qabench.evaluate_predictions``, which checks the arguments.

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
    """Score each system in a file of predictions by itself, with all its samples.

    See ``evaluate`` for the arguments, and ``by_system`` for what is a system and a sample. A system
    without a prediction for these questions is left out, which is a problem of the others. A
    prediction with the text of another question than its id has is an error (see ``identified``).
    """
    loaded, options = _load(benchmark, config, questions, predictions, options)
    predictions, notes = identified(benchmark, loaded, predictions, questions)
    evaluations = _evaluated_systems(benchmark, loaded, predictions, groups, progress, options)
    return [replace(each, notes=[*notes, *each.notes]) for each in evaluations]


def _evaluated_systems(
    benchmark: Benchmark,
    loaded: Questions,
    predictions: Predictions,
    groups: Sequence[str] | None,
    progress: Progress | None,
    options: Mapping[str, Any],
) -> list[Evaluation]:
    systems = by_system(predictions, all_are_samples=loaded.are_lines)
    if len(systems) == 1 and all(len(samples) == 1 for samples in systems.values()):
        return [_evaluate(benchmark, loaded, predictions, groups, progress, options)]
    ids = {question.id for question in loaded.rows}
    evaluations, left_out = [], []
    for system, samples in systems.items():
        known: list[Predictions] = []
        unknown: list[Prediction] = []  # of samples without a known question
        for part in samples:
            if any(row.id in ids for row in part.rows):
                known.append(part)
            else:
                unknown += part.rows
        if not known:
            left_out.append(system or predictions.system)
            continue
        known[0] = replace(known[0], rows=[*known[0].rows, *unknown])
        scored = [_evaluate(benchmark, loaded, part, groups, progress, options) for part in known]
        evaluations.append(_named(scored, predictions, system, len(systems) > 1))
    if not evaluations:  # raises an error that says so
        return [_evaluate(benchmark, loaded, predictions, groups, progress, options)]
    if left_out:
        problem = f"systems without a prediction for these questions: {len(left_out)} ({some(left_out)})"
        evaluations = [replace(each, problems=[*each.problems, problem]) for each in evaluations]
    return evaluations


def _named(
    samples: Sequence[Evaluation], predictions: Predictions, system: str, is_one_of_several: bool
) -> Evaluation:
    """Return the evaluations of a system's samples as one, with the name of the system."""
    name = system or predictions.system
    path = f"{predictions.path} ({name})" if is_one_of_several else predictions.path
    named = {SYSTEM: name} if is_one_of_several else {}
    arguments = {**samples[0].arguments, **named}
    if len(samples) == 1:
        return replace(samples[0], model=name, path=path, arguments=arguments)
    numbered = [replace(each, path=f"sample {number}") for number, each in enumerate(samples, start=1)]
    return replace(as_samples(numbered), model=name, path=path, arguments=arguments)


def _load(
    benchmark: Benchmark,
    config: str | None,
    questions: Path | None,
    predictions: Predictions,
    options: Mapping[str, Any],
) -> tuple[Questions, dict[str, Any]]:
    """Return the questions, and the options that are not of loading them."""
    names = {option.name for option in benchmark.options if option.method == "load"}
    loading = {name: options.get(name) for name in names}
    scoring = {name: value for name, value in options.items() if name not in names}
    return benchmark.load_for(predictions, config, questions, **loading), scoring


def _evaluate(
    benchmark: Benchmark,
    loaded: Questions,
    predictions: Predictions,
    groups: Sequence[str] | None,
    progress: Progress | None,
    options: Mapping[str, Any],
) -> Evaluation:
    computed = groups or benchmark.groups_of(loaded, predictions)
    joined = benchmark.join(loaded, predictions, computed, options)
    scorer = benchmark.scorer(computed, **options)
    by_id = {question.id: question for question in loaded.rows}
    rows = [by_id[id] for id in joined.ids]
    items = [
        Item(question.row, prediction.fields if prediction else None)
        for question, prediction in zip(rows, joined.rows, strict=True)
    ]
    outcomes = outcomes_of(scorer, items, benchmark.name, joined.ids, progress)
    signatures = scorer.signatures(items, {"benchmark": benchmark.name, **loaded.fields})
    scored = list(zip(rows, joined.rows, outcomes, strict=True))
    _check_computed(scorer, groups, signatures, predictions.path, _unusable(scored))
    split = {} if loaded.split is None else {"split": loaded.split}
    explanations = [outcome.explanation for outcome in outcomes if outcome.explanation]
    lacking = scorer.needs.keys() - signatures.keys()
    columns = dict.fromkeys(name for outcome in outcomes for name in outcome.scores)
    asked = asked_field(joined.ids)
    return Evaluation(
        path=predictions.path,
        task=PREDICTIONS,
        config=loaded.config,
        setting=PREDICTIONS,
        model=predictions.system,
        created=predictions.created,
        status="success",
        records=[_record(*parts) for parts in scored],
        signatures={group: with_fields(line, asked=asked) for group, line in signatures.items()},
        expected=len(scored),
        available=len(loaded.rows),
        unscored=None if columns else next(iter(explanations), None),
        arguments=_arguments(benchmark, options) | split,
        problems=[
            *joined.problems,
            *_without_group(benchmark, computed, scorer),
            *_without_fields(scored),
            *_unusable(scored),
            *absent_scores(benchmark, set(computed) - lacking, columns, scorer.notes),
            *scorer.problems,
        ],
        notes=scorer.notes,
        **benchmark.scoring(),
    )


def _without_group(benchmark: Benchmark, groups: Sequence[str], scorer: Scorer) -> list[str]:
    """Say why default groups are not scored, because no prediction has what they need."""
    if not set(benchmark.default_groups).isdisjoint(groups):
        return []
    absent = [group for group in benchmark.default_groups if group in scorer.needs]
    return [f"no scores of {group}: {scorer.needs[group]}" for group in absent if group not in groups]


def _without_fields(scored: Sequence[tuple[Question, Prediction | None, Outcome]]) -> list[str]:
    """Count the answered predictions that have nothing for a group of scores, by group."""
    predictions: dict[str, list[str]] = {}
    for _, prediction, outcome in scored:
        for group, status in outcome.statuses.items():
            if prediction and status == MISSING:
                predictions.setdefault(group, []).append(str(prediction))
    return [
        f"predictions without anything for {group}: {len(each)} ({some(each)})"
        for group, each in predictions.items()
    ]


def _check_computed(
    scorer: Scorer,
    groups: Sequence[str] | None,
    signatures: Mapping[str, str],
    path: str,
    unusable: Sequence[str],
) -> None:
    """Check that the groups that were asked for, or any by default, could be computed.

    The error names the ``unusable`` predictions, which may be the reason.

    Raises InputError.
    """
    if absent := [name for name in groups or () if name in scorer.needs and name not in signatures]:
        reasons = "; ".join([*unusable, scorer.needs[absent[0]]])
        raise InputError(f"{', '.join(absent)} cannot be computed: {reasons}")
    if scorer.needs and not signatures:
        reasons = "; ".join([*unusable, next(iter(scorer.needs.values()))])
        raise InputError(f"nothing to score in {path}: {reasons}")


def absent_scores(
    benchmark: Benchmark, groups: Iterable[str], columns: Iterable[str], notes: Sequence[str]
) -> list[str]:
    """Say which declared scores of these groups cannot be computed from the numbers that a scorer returned.

    Partial scores may lack. If there are no numbers at all, the reason is another one. If a whole
    group lacks, the notes of the scorer can say why, such as a judge without a key.
    """
    returned = list(columns)
    computed = {spec.group for spec in present(benchmark.scores, returned)}
    expected = computed.intersection(groups) if notes else groups
    # Of scores over readable replies, the unreadable replies are counted and named.
    of_readable = {spec.readable for spec in benchmark.scores}
    names = [
        spec.name
        for spec in benchmark.scores
        if spec.group in expected
        and not spec.partial
        and spec.name not in of_readable
        and not present([spec], returned)
    ]
    if not returned or not names:
        return []
    return [
        f"{benchmark.title} scores that no answer has: {', '.join(names)}; the answers have only: "
        f"{', '.join(returned)}"
    ]


def _arguments(benchmark: Benchmark, options: Mapping[str, Any]) -> dict[str, Any]:
    recorded = [
        option for option in benchmark.options if option.method == "scorer" and not option.secret
    ]
    return without_none({each.name: options.get(each.name, each.default) for each in recorded})


def _unusable(scored: Sequence[tuple[Question, Prediction | None, Outcome]]) -> list[str]:
    """Count the predictions that cannot be used, with their lines and reasons."""
    named = [
        f"{prediction.id} (line {prediction.line}): {outcome.problem}"
        for _, prediction, outcome in scored
        if prediction and not outcome.usable
    ]
    return [f"unusable predictions: {len(named)} ({some(named)})"] if named else []


def _record(question: Question, prediction: Prediction | None, outcome: Outcome) -> Record:
    texts: Sequence[str] = [] if outcome.answer is None else [outcome.answer]
    if outcome.texts is not None:
        texts = outcome.texts
    return Record(
        id=question.id,
        epoch=1,
        question=question.text,
        reference=question.reference,
        messages=[Message("assistant", text) for text in texts],
        answer=outcome.answer,
        status=outcome.status if prediction else MISSING,
        problem=outcome.problem if prediction else NO_PREDICTION,
        scores=outcome.scores,
        groups=question.groups,
        detail=outcome.detail,
        statuses=outcome.statuses,
    )
