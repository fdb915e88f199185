"""Scores the answers of a log again with today's code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any

from qabench.adapters.files import absent_score_problems, evaluate
from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.predictions import Prediction, Predictions
from qabench.data.rows import grouped
from qabench.errors import InputError, QabenchError, some
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.records import column_names
from qabench.evaluation.signature import ASKED, VERSION, parse, signature

# Values that a signature's field for a model can have instead of a model's name.
UNSTATED, NONE = "unstated", "none"
# Results of different library versions may differ in the last digits.
TOLERANCE = 1e-9


def rescored(run: Evaluation, questions: Path | None = None, **options: Any) -> Evaluation:
    """Return the evaluation of a log with its answers scored again by today's code.

    Verdicts of models are used only if they are in the reply cache. Scores that cannot be computed
    again keep their recorded values. ``Evaluation.recorded`` lists them, and they are a deviation.
    The fields of a signature that describe how the model was asked keep their recorded values, too.

    Args:
        run: the evaluation of a log.
        questions: the file of questions of a run with custom questions.
        **options: options of the benchmark, which replace the run's.
    """
    # Score the answers of each epoch.
    benchmark = benchmark_of(run.benchmark)
    columns = _columns_of_groups(benchmark, run)
    if not run.answered or not columns:
        return run
    options_of_run = benchmark.logs().rescoring_options(run)
    replaced = {name: value for name, value in options.items() if name in options_of_run}
    config = run.config if questions is None else None
    epochs: dict[int, Evaluation] = {}
    try:
        for epoch, predictions in _predictions(run, benchmark).items():
            epochs[epoch] = evaluate(
                benchmark,
                config,
                predictions,
                questions=questions,
                **{**options_of_run, **replaced},
            )
    except (QabenchError, ImportError) as error:
        return replace(run, recorded=dict.fromkeys(columns, f"not computed again: {error}"))

    # Find which scores stay as they are in the log.
    today = next(iter(epochs.values()))
    new_records: dict[tuple[int, str], Record] = {}
    for epoch, evaluation in epochs.items():
        for record in evaluation.records:
            new_records[epoch, record.id] = record
    # Pairs of a record of the log and its rescored record, or None if there is none.
    pairs = []
    for record in run.records:
        pairs.append((record, new_records.get((record.epoch, record.id))))
    kept_groups = set()
    kept_columns: set[str] = set()
    for group, names in columns.items():
        # Scores by a model are kept as recorded if the model differs or a reply is not in the
        # cache.
        if not _is_by_same_model(benchmark, run, today, group) or _lacks_a_score(pairs, names):
            kept_groups.add(group)
            kept_columns |= names

    # Put today's scores into the records.
    records: list[Record] = []
    differing: list[str] = []
    for old, new in pairs:
        record = _with_new_scores(old, new, kept_columns)
        if _differs(old, record):
            differing.append(old.id)
            detail = dict(old.detail)
            for name, value in (new or old).detail.items():
                # An empty detail was not computed again, so the recorded one stays.
                if value:
                    detail[name] = value
            record = replace(record, detail=detail)
        records.append(record)

    # Say what differs, and sign what computed each score.
    absent = absent_score_problems(benchmark, run.signatures, column_names(records), today.notes)
    problems = [*run.problems, *absent]
    if differing:
        problems.append(
            f"answers whose scores in the log differ from those computed now: {len(differing)} ({some(differing)}); "
            "the new scores are used"
        )
    signatures = dict(run.signatures)
    for group, line in run.signatures.items():
        if group not in kept_groups:
            signatures[group] = _signed(line, today.signatures.get(group, ""))
    return replace(
        run,
        records=records,
        available=today.available,
        signatures=signatures,
        problems=problems,
        recorded=dict.fromkeys(kept_groups, "") | _labeled(benchmark, today, run),
    )


def _columns_of_groups(benchmark: Benchmark, run: Evaluation) -> dict[str, set[str]]:
    """Return the columns that the scores of each group of the log need."""
    recorded = set(column_names(run.records))
    columns: dict[str, set[str]] = {}
    for spec in benchmark.scores:
        if spec.group in run.signatures or recorded.intersection(spec.needs):
            columns.setdefault(spec.group, set()).update(spec.needs)
    return columns


def _predictions(run: Evaluation, benchmark: Benchmark) -> dict[int, Predictions]:
    """Return predictions, by epoch, that are scored like the answers in the log."""
    logs = benchmark.logs()
    rows: list[tuple[int, Prediction]] = []
    for number, record in enumerate(run.records, start=1):
        fields = {"id": record.id} | logs.rescored_prediction(record)
        rows.append((record.epoch, Prediction(number, record.id, fields)))
    return {epoch: Predictions(run.path, of_epoch) for epoch, of_epoch in grouped(rows).items()}


def _is_by_same_model(benchmark: Benchmark, run: Evaluation, today: Evaluation, group: str) -> bool:
    """Return whether today's code computed the group, with the log's model or without asking one."""
    if group not in today.signatures:
        return False
    fields = _fields(today.signatures[group])
    fields_of_log = _fields(run.signatures.get(group, ""))
    for name in benchmark.logs().model_fields:
        if fields.get(name) not in (UNSTATED, fields_of_log.get(name)):
            return False
    return True


def _lacks_a_score(pairs: list[tuple[Record, Record | None]], columns: set[str]) -> bool:
    """Return whether the log has a value in these columns that could not be computed again."""
    for old, new in pairs:
        if new and columns & (old.scores.keys() - new.scores.keys()):
            return True
    return False


def _with_new_scores(old: Record, new: Record | None, kept_columns: set[str]) -> Record:
    """Return a record of the log with today's scores, except in the columns that are kept."""
    scores = {}
    for name, value in old.scores.items():
        if name in kept_columns:
            scores[name] = value
    computed = new.scores if new else {}
    for name, value in computed.items():
        if name not in kept_columns:
            scores[name] = value
    return replace(old, scores=scores)


def _differs(old: Record, new: Record) -> bool:
    """Return whether two records differ in a score that both have."""
    for name in old.scores.keys() & new.scores.keys():
        if not isclose(old.scores[name], new.scores[name], abs_tol=TOLERANCE):
            return True
    return False


def _labeled(benchmark: Benchmark, today: Evaluation, run: Evaluation) -> dict[str, str]:
    """Return the groups that are computed from a model's labels in the log, with that model."""
    labeled: dict[str, str] = {}
    for group, line in run.signatures.items():
        fields_of_log = _fields(line)
        fields = _fields(today.signatures.get(group, ""))
        for name in benchmark.logs().model_fields:
            model = fields_of_log.get(name, NONE)
            if model not in (NONE, UNSTATED) and fields.get(name) == UNSTATED:
                labeled[group] = f"{name} by {model}"
    return labeled


def _fields(line: str) -> Mapping[str, str]:
    """Return the fields of a signature, or {} for a text that is not one."""
    try:
        return parse(line)[1]
    except InputError:
        # An edited signature is reported as a deviation.
        return {}


def _signed(recorded: str, today: str) -> str:
    """Return the log's signature with the fields that today's scores have."""
    if not today or not _fields(recorded):
        return recorded
    name, fields = parse(today)
    merged = dict(_fields(recorded))
    for field, value in fields.items():
        # Rescoring does not know which questions were asked, and leaves a model unstated if it did
        # not ask the model. These fields keep their recorded values.
        if field != ASKED and value != UNSTATED:
            merged[field] = value
    # The new signature gets today's version.
    del merged[VERSION]
    return signature(name, **merged)
