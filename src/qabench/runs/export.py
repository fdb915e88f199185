"""A run's answers in the formats that other programs read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from qabench.benchmarks import benchmark
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record


def predictions(run: Evaluation) -> str:
    """Return the answers of the first epoch as JSONL, with the fields that ``qabench score`` reads.

    Records without any of these fields, such as failed ones, are left out; the official scorers count them as
    unanswered.

    Raises:
        InputError: the run has no answers.
    """
    descriptor = benchmark(run.benchmark)
    predictions_by_id = {record.id: descriptor.prediction(record) for record in run.records if record.epoch == 1}
    rows = [
        {"id": id} | fields
        for id, fields in predictions_by_id.items()
        if any(value is not None and value != [] for value in fields.values())
    ]
    if not rows:
        raise InputError(f"{run.path} has no answers: {len(predictions_by_id)} questions, none answered")
    return _lines(rows)


def records(run: Evaluation) -> str:
    """Return everything about each record as JSONL, which ``load_dataset("json", ...)`` reads.

    Scores and detail are JSON text, because they differ between benchmarks and a column has one type.
    """
    return _lines(_row(run, record) for record in run.records)


def _row(run: Evaluation, record: Record) -> dict[str, Any]:
    return {
        **{name: getattr(record, name) for name in ("id", "epoch")},
        **{name: getattr(run, name) for name in ("benchmark", "config", "setting", "model")},
        **{name: getattr(record, name) for name in ("question", "reference", "answer", "status", "problem")},
        "messages": [{"role": message.role, "text": message.text} for message in record.messages],
        "scores": json.dumps(dict(record.scores)),
        "groups": json.dumps({name: list(names) for name, names in record.groups.items()}, ensure_ascii=False),
        "detail": json.dumps(record.detail, ensure_ascii=False),
        **{name: getattr(record, name) for name in ("input_tokens", "output_tokens", "seconds")},
    }


def _lines(rows: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> str:
    # Escaped: an answer can contain a lone surrogate, which UTF-8 cannot encode.
    return "".join(json.dumps(row) + "\n" for row in rows)
