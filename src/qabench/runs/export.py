"""A run's answers as predictions, and its records, for other programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from qabench.benchmarks import benchmark
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation import Evaluation


def predictions(run: Evaluation) -> str:
    """Return the answers of the first epoch as JSONL, with the fields that ``qabench score`` reads.

    Records without any of these fields, such as failed ones, are left out. The official scorers
    count them as unanswered.

    Raises:
        InputError: the run has no answers.
    """
    logs = benchmark(run.benchmark).logs()
    predictions_by_id = {}
    for record in run.records:
        # A file of predictions has one answer per question, so only the first epoch is exported.
        if record.epoch == 1:
            predictions_by_id[record.id] = logs.prediction(record)
    rows = []
    for id, fields in predictions_by_id.items():
        # A question without a line is unanswered. An empty field would be an answer.
        values = [value for value in fields.values() if value not in (None, [])]
        if values:
            rows.append({"id": id} | fields)
    if not rows:
        raise InputError(f"{run.path} has no answers: none of its questions was answered")
    return _lines(rows)


def records(run: Evaluation) -> str:
    """Return everything about each record as JSONL, which ``load_dataset("json", ...)`` reads.

    Scores, groups, detail and statuses are JSON text, because they differ between benchmarks and a
    column has one type.
    """
    of_run = {name: getattr(run, name) for name in ("benchmark", "config", "setting", "model")}
    rows = []
    for record in run.records:
        row = of_run | asdict(record)
        for name in ("scores", "groups", "detail", "statuses"):
            row[name] = json.dumps(row[name], ensure_ascii=False)
        rows.append(row)
    return _lines(rows)


def _lines(rows: Iterable[Json]) -> str:
    # JSON in ASCII, because an answer can contain a lone surrogate, which UTF-8 cannot encode.
    return "".join(json.dumps(row) + "\n" for row in rows)
