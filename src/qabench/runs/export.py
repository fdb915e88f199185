"""A run's answers in the formats that other programs read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.errors import InputError, QabenchError
from qabench.evaluation import Evaluation, Record
from qabench.runs.log import whole_log

FORMATS = ("predictions", "records", "eval")


def predictions(run: Evaluation, epoch: int = 1) -> str:
    """The answers as JSONL, with the fields that ``qabench score`` reads for the benchmark, such as {"id", "answer"}.

    Records without any of these fields, such as failed ones, are left out; the official scorers count them as
    unanswered.

    Raises:
        InputError: the run does not have the epoch, or no answers in it.
    """
    if all(record.epoch != epoch for record in run.records):
        raise InputError(f"{run.path} has no epoch {epoch}; it has {_epochs(run)}")
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
    """Everything about each record as JSONL; columns have one type each, so ``load_dataset("json", ...)`` reads it.

    Scores and detail are JSON text, because they differ between benchmarks.
    """
    return _lines(_row(run, record) for record in run.records)


def write_with_numbered_samples(log: str | Path, out: str | Path) -> None:
    """Writes a copy of a log with samples numbered from 1 and the benchmark's ids in their metadata as ``id``.

    ``load_dataset("eval", data_files=...)`` of datasets 5.2 sorts samples by their number, and fails on other ids.
    """
    import inspect_ai.log

    whole = whole_log(log)
    numbers = {sample_id: number for number, sample_id in enumerate(whole.eval.dataset.sample_ids or [], start=1)}
    whole.eval.dataset.sample_ids = list(numbers.values())
    for sample in whole.samples or []:
        sample.metadata["id"] = sample.id
        sample.id = numbers[sample.id]
    for reduction in whole.reductions or []:
        for scored in reduction.samples:
            scored.sample_id = numbers.get(scored.sample_id, scored.sample_id)
    try:
        inspect_ai.log.write_eval_log(whole, str(out), format="eval")
    except OSError as error:
        raise QabenchError(f"cannot write {out}: {error.strerror or error}") from error


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


def _epochs(run: Evaluation) -> str:
    epochs = sorted({record.epoch for record in run.records})
    return f"the epochs {', '.join(map(str, epochs))}" if epochs else "no records"
