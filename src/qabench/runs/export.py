"""A run's answers in the formats that other programs read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from qabench.benchmarks import benchmark
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record


def predictions(run: Evaluation, epoch: int = 1) -> str:
    """Return the answers as JSONL, with the fields that ``qabench score`` reads, such as {"id", "answer"}.

    Records without any of these fields, such as failed ones, are left out; the official scorers count them as
    unanswered.

    Raises:
        InputError: the run does not have the epoch, or no answers in it.
    """
    epochs = sorted({record.epoch for record in run.records})
    if epoch not in epochs:
        raise InputError(f"{run.path} has no epoch {epoch}; it has the epochs {', '.join(map(str, epochs)) or 'none'}")
    descriptor = benchmark(run.benchmark)
    records = [record for record in run.records if record.epoch == epoch]
    predictions_by_id = [(record.id, descriptor.prediction(record)) for record in records]
    rows = [
        {"id": id} | fields
        for id, fields in predictions_by_id
        if any(value is not None and value != [] for value in fields.values())
    ]
    if not rows:
        raise InputError(f"{run.path} has no answers in epoch {epoch}: {len(records)} questions, none answered")
    return _lines(rows)


def records(run: Evaluation) -> str:
    """Return everything about each record as JSONL, which ``load_dataset("json", ...)`` reads.

    Scores and detail are JSON text, because they differ between benchmarks and a column has one type.
    """
    return _lines(_row(run, record) for record in run.records)


def _row(run: Evaluation, record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "epoch": record.epoch,
        "benchmark": run.benchmark,
        "config": run.config,
        "setting": run.setting,
        "model": run.model,
        "question": record.question,
        "reference": record.reference,
        "answer": record.answer,
        "status": record.status,
        "problem": record.problem,
        "messages": [{"role": message.role, "text": message.text} for message in record.messages],
        "scores": json.dumps(dict(record.scores)),
        "groups": json.dumps({name: list(names) for name, names in record.groups.items()}, ensure_ascii=False),
        "detail": json.dumps(record.detail, ensure_ascii=False),
        "input_tokens": record.input_tokens,
        "output_tokens": record.output_tokens,
        "seconds": record.seconds,
    }


def _lines(rows: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> str:
    # Escaped: an answer can contain a lone surrogate, which UTF-8 cannot encode.
    return "".join(json.dumps(row) + "\n" for row in rows)
