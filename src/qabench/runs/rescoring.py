"""A run's answers scored again with today's code: a log's own scores are never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isclose
from typing import Any

from qabench.benchmarks import benchmark
from qabench.benchmarks.base import Benchmark
from qabench.data.predictions import Prediction, Predictions, some
from qabench.errors import InputError, QabenchError
from qabench.evaluation import Evaluation
from qabench.evaluation.signature import parse, signature

UNSTATED, NONE = "unstated", "none"
TOLERANCE = 1e-9  # versions of libraries differ in the last digits


def rescored(run: Evaluation, questions: Any = None, **options: Any) -> Evaluation:
    """Return the evaluation of a log with scores of its answers by today's code.

    Verdicts of models are used only if they are in the reply cache. Scores that cannot be computed again are those of
    the log, and ``Evaluation.recorded`` says so, which is a deviation. The fields of a signature that describe how the
    model was asked are those of the log. ``questions`` is the file of questions of a run with custom questions;
    ``options`` of the benchmark replace those of the run.
    """
    scorer = benchmark(run.benchmark)
    families = [family for family in run.signatures if family in {metric.family for metric in scorer.metrics}]
    if run.unscored or not run.answered or not families:
        return run
    of_run = scorer.rescoring_options(run)
    options = of_run | {name: value for name, value in options.items() if name in of_run}
    config = run.config if questions is None else None
    try:
        epochs = {
            epoch: scorer.evaluate(config, predictions, questions=questions, **options)
            for epoch, predictions in _predictions(run, scorer).items()
        }
    except (QabenchError, ImportError) as error:
        return replace(run, recorded=dict.fromkeys(families, f"not computed again: {error}"))
    today = next(iter(epochs.values()))
    absent = {family for family in families if not _is_computed(scorer, run, epochs, family)}
    recorded_columns = {name for metric in scorer.metrics if metric.family in absent for name in metric.needs}
    records, differing = [], []
    by_id = {epoch: {record.id: record for record in evaluation.records} for epoch, evaluation in epochs.items()}
    for record in run.records:
        computed = by_id.get(record.epoch, {}).get(record.id)
        scores = {name: value for name, value in record.scores.items() if name in recorded_columns}
        scores |= {
            name: value for name, value in (computed.scores if computed else {}).items() if name not in recorded_columns
        }
        both = record.scores.keys() & scores.keys()
        if all(isclose(record.scores[name], scores[name], abs_tol=TOLERANCE) for name in both):
            records.append(replace(record, scores=scores))
        else:
            differing.append(record.id)
            detail = {name: value for name, value in (computed.detail if computed else {}).items() if value}
            records.append(replace(record, scores=scores, detail=dict(record.detail) | detail))
    problems = list(run.problems)
    if differing:
        problems.append(
            f"scores in the log that differ from those of its answers: {len(differing)} ({some(differing)}); "
            "the answers were scored again"
        )
    lines = {
        family: line if family in absent else _signed(line, today.signatures.get(family, ""))
        for family, line in run.signatures.items()
    }
    recorded = dict.fromkeys(absent, "") | _labeled(scorer, today, run)
    fields: dict[str, Any] = {"signatures": lines, "problems": problems, "recorded": recorded}
    return replace(run, records=records, available=today.available, **fields)


def _predictions(run: Evaluation, scorer: Benchmark) -> dict[int, Predictions]:
    """Return the predictions of each epoch that would get the scores of the answers."""
    rows: dict[int, list[Prediction]] = {}
    for number, record in enumerate(run.records, start=1):
        fields = {"id": record.id} | scorer.rescored_prediction(record)
        rows.setdefault(record.epoch, []).append(Prediction(number, record.id, fields))
    return {epoch: Predictions(run.path, tuple(of_epoch)) for epoch, of_epoch in rows.items()}


def _is_computed(scorer: Benchmark, run: Evaluation, epochs: Mapping[int, Evaluation], family: str) -> bool:
    """Return whether today's code has all of the family's scores that the log has, by the same model."""
    if any(family not in evaluation.signatures for evaluation in epochs.values()):
        return False
    columns = {name for metric in scorer.metrics if metric.family == family for name in metric.needs}
    by_key = {
        (epoch, record.id): record.scores for epoch, evaluation in epochs.items() for record in evaluation.records
    }
    lacking = any(
        (columns & record.scores.keys()) - by_key.get((record.epoch, record.id), record.scores).keys()
        for record in run.records
    )
    ours, theirs = _fields(next(iter(epochs.values())).signatures[family]), _fields(run.signatures[family])
    same_model = all(ours.get(name) in (UNSTATED, theirs.get(name)) for name in scorer.model_fields)
    return not lacking and same_model


def _labeled(scorer: Benchmark, today: Evaluation, run: Evaluation) -> dict[str, str]:
    """Return the families that are computed from labels in the log, which a model made."""
    return {
        family: f"{name} by {label}"
        for family, line in run.signatures.items()
        for name in scorer.model_fields
        if (label := _fields(line).get(name, NONE)) not in (NONE, UNSTATED)
        and _fields(today.signatures.get(family, "")).get(name) == UNSTATED
    }


def _fields(line: str) -> dict[str, str]:
    try:
        return parse(line)[1]
    except InputError:
        return {}


def _signed(recorded: str, today: str) -> str:
    """Return the log's signature with the fields that today's scores have."""
    if not today or not _fields(recorded):
        return recorded
    name, fields = parse(today)
    merged = _fields(recorded) | {key: value for key, value in fields.items() if value != UNSTATED}
    return signature(name, **{key: value for key, value in merged.items() if key != "qabench"})
