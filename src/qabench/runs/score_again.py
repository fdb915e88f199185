"""Scores the stored answers in logs of other tasks with a benchmark's scorer, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark
from qabench.data.joining import SAMPLE
from qabench.data.rows import Row, grouped
from qabench.errors import InputError, some
from qabench.evaluation import Evaluation
from qabench.evaluation.score_spec import Names
from qabench.evaluation.scoring import Progress
from qabench.runs.file_kinds import lm_eval_rows
from qabench.runs.foreign_logs import read_foreign
from qabench.runs.predictions import evaluations_of


def scored_again(
    benchmark: Benchmark,
    config: str | None,
    path: str | Path,
    scores: Names = None,
    *,
    questions: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Evaluation]:
    """Score the answers of a log of another task with a benchmark's scorer.

    Questions are matched by id, or else by text.

    Args:
        benchmark: the benchmark, which can be a custom one.
        config: a config of the benchmark. None for its default.
        path: an Inspect AI log, or samples of lm-evaluation-harness, lighteval or Every Eval Ever.
        scores: names of scores and groups. None for the default groups.
        questions: a file of questions in the benchmark's format.
        progress: called with the number of units scored so far, and the number of all units.
        **options: options of the benchmark.

    Raises:
        InputError: the file is not a log of another task, or has no answer to a question of the
            benchmark.
    """
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder; name its logs of other tasks one by one")
    shared: dict[str, Any] = {"questions": questions, "progress": progress, **options}
    samples = lm_eval_rows(Path(path))
    # Samples with the benchmark's ids are predictions already, which need no matching by text.
    if samples and _has_own_ids(benchmark, config, questions, samples[0].fields):
        return evaluations_of(benchmark, config, path, scores, **shared)
    logs = read_foreign(Path(path))
    if not logs:
        raise InputError(
            f"{path} is not a log of another task; `qabench score {benchmark.name} FILE` scores predictions and logs "
            "of qabench"
        )
    evaluations = []
    for log in logs:
        rows, by_text, unmatched = _predictions(benchmark, config, questions, log)
        problems = []
        if unmatched:
            problems.append(
                f"answers that match no question of {benchmark.title}: {len(unmatched)} ({some(unmatched)})"
            )
        for evaluation in evaluations_of(benchmark, config, rows, scores, **shared):
            note = f"answers of {log.path} (task {log.config}), scored again without a model"
            if by_text:
                note += f"; {by_text} of {len(rows)} matched by the text of the question"
            arguments = {**evaluation.arguments, "scored_again": log.config}
            evaluations.append(
                replace(
                    evaluation,
                    path=log.path,
                    model=log.model,
                    created=log.created,
                    arguments=arguments,
                    notes=[note, *evaluation.notes],
                    problems=[*problems, *evaluation.problems],
                )
            )
    return evaluations


def _has_own_ids(
    benchmark: Benchmark, config: str | None, questions: Path | None, sample: Row
) -> bool:
    """Tell whether a sample is from a task of the benchmark: its document has a question's id."""
    document = sample.get("doc")
    ids = {question.id for question in benchmark.load(config, questions).rows}
    if not isinstance(document, dict):
        return False
    for field in benchmark.id_fields:
        if str(document.get(field)) in ids:
            return True
    return False


def _predictions(
    benchmark: Benchmark, config: str | None, questions: Path | None, log: Evaluation
) -> tuple[list[Row], int, list[str]]:
    """Return the answers of a log as predictions.

    Returns:
        The predictions, how many of them were matched by the question's text, and the ids of
        samples of other questions.
    """
    loaded = benchmark.load(config, questions).rows
    texts = {question.id: _words(question.text) for question in loaded}
    # Two questions of a benchmark may have the same text, which then does not identify either.
    ids_by_text = grouped((text, id) for id, text in texts.items())
    field = benchmark.prediction_fields[0]
    rows: list[Row] = []
    unmatched: list[str] = []
    by_text = 0
    for record in log.records:
        text = _words(record.question)
        # A log of another task may use the same id for a different question.
        same_id = record.id in texts and _fits(text, texts[record.id])
        candidates: Sequence[str] = [record.id] if same_id else ids_by_text.get(text, [])
        if len(candidates) != 1:
            unmatched.append(record.id)
            continue
        # A question without a prediction is unanswered. An empty one would be an answer.
        if record.answer is not None:
            by_text += not same_id
            rows.append({"id": candidates[0], field: record.answer, SAMPLE: record.epoch})
    if not rows and not unmatched:
        raise InputError(f"{log.path} has no answers")
    if not rows:
        raise InputError(
            f"{log.path}: no answer matches a question of {benchmark.title} {config or ''}".rstrip()
            + f"; neither its ids ({some(unmatched)}) nor the texts of its questions are the benchmark's"
        )
    return rows, by_text, unmatched


def _words(text: str) -> str:
    """Return a text with normalized white space, for comparisons."""
    return " ".join(text.split())


def _fits(text: str, question: str) -> bool:
    """Tell whether a log's text may be a question's, perhaps with a prompt around it, or cut."""
    return not text or question in text or text in question
