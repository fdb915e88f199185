"""Which question a prediction of a file answers: by its id, and by the question's text where both sides have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.benchmarks.base import Benchmark
from qabench.data.predictions import Prediction, Predictions, some
from qabench.data.sources import available
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts import LEADERBOARD, SHIPPED, dataset_table, source_table

TEXT = "question"  # the field of a prediction with the question's text, whatever the dataset calls it
UNIQUE = "question_id"  # the field with ``Question.unique_id``


def identified(
    benchmark: Benchmark, loaded: Questions, predictions: Predictions, questions: Path | None
) -> tuple[Predictions, list[str]]:
    """Return the predictions with the ids of these questions, and notes about what could not be checked.

    Args:
        benchmark: the benchmark.
        loaded: the questions that are scored.
        predictions: the content of a file. An id may be ``Question.id`` or ``Question.unique_id``.
        questions: the custom file that the questions are from.

    Raises:
        InputError: a prediction is for another question than the one with its id.
    """
    by_id = {question.id: question for question in loaded.rows}
    by_unique_id = {question.unique_id: question for question in loaded.rows if question.unique_id}
    rows: list[Prediction] = []
    different: list[tuple[Prediction, Question]] = []
    unchecked: list[Prediction] = []
    for row in predictions.rows:
        if row.id in by_unique_id and row.id not in by_id:
            rows.append(replace(row, id=by_unique_id[row.id].id))
            continue
        rows.append(row)
        question = by_id.get(row.id)
        if question is None:
            continue
        same = _is_same(row, question)
        if same is None and question.unique_id:
            unchecked.append(row)
        elif same is False:
            different.append((row, question))
    if different:
        raise InputError(_explained(benchmark, loaded, predictions, different, questions))
    notes = []
    if unchecked and loaded.split is not None and questions is None:
        notes.append(
            f"not checked whether these are predictions for the split {loaded.split}, because other splits have the "
            f"same ids: {len(unchecked)} ({some(unchecked)}); add the field {TEXT!r} or {UNIQUE!r} of the dataset"
        )
    return replace(predictions, rows=rows), notes


def _is_same(row: Prediction, question: Question) -> bool | None:
    """Tell whether a prediction's text or unique id is the question's. None if the prediction has neither."""
    unique_id = row.fields.get(UNIQUE)
    if question.unique_id and isinstance(unique_id, str) and unique_id not in ("", row.id):
        return unique_id == question.unique_id
    text = _text_in(row, question)
    if not text:
        return None
    own = _normalized(question.text)
    # A prompt contains the question, and a table may have cut it.
    return own in text or text in own


def _text_in(row: Prediction, question: Question) -> str:
    """Return the text of the question in a prediction, or "" if it has none."""
    columns = [name for name, value in question.row.items() if value == question.text]
    for name in (TEXT, *columns):
        value = row.fields.get(name)
        if isinstance(value, str) and value.strip():
            return _normalized(value)
    return ""


def _normalized(text: str) -> str:
    return " ".join(text.split()).casefold()


def _explained(
    benchmark: Benchmark,
    loaded: Questions,
    predictions: Predictions,
    different: Sequence[tuple[Prediction, Question]],
    questions: Path | None,
) -> str:
    """Return the text of the error for predictions of other questions, with the part of the dataset that has them."""
    row, question = different[0]
    given = row.fields.get(TEXT) or row.fields.get(UNIQUE) or _text_in(row, question)
    scored = " ".join(filter(None, (benchmark.name, loaded.config, loaded.split)))
    fix = f"pass the config that they are for, or remove the field if it is not the question of {benchmark.title}"
    if questions is None:
        for config, split, part in _parts(benchmark):
            if (config, split or part.split) == (loaded.config, loaded.split):
                continue
            by_id = {each.id: each for each in part.rows}
            if all(other.id in by_id and _is_same(other, by_id[other.id]) for other, _ in different):
                place = f"config {config!r}" + (f" and split {split!r}" if split else "")
                fix = f"they are for the {place}: score them there"
                break
    return (
        f"{predictions.path}: {len(different)} predictions are for other questions than {scored} has with their ids "
        f"({some(row for row, _ in different)}): the first has the question {given!r:.120}, the dataset "
        f"{question.text!r:.120}; {fix}"
    )


def _parts(benchmark: Benchmark) -> Iterator[tuple[str, str | None, Questions]]:
    """Yield config, split and questions of the parts of a dataset whose files are here. Nothing is downloaded."""
    has_splits = any(option.name == "split" and option.method == "load" for option in benchmark.options)
    sources = source_table(benchmark.name)
    for name, config in dataset_table(benchmark.name).configs.items():
        if name == LEADERBOARD:
            continue
        for split, files in config.splits.items():
            if not all(file.startswith(SHIPPED) or available(sources[file]) for file in files):
                continue
            options: dict[str, Any] = {"split": split} if has_splits else {}
            try:
                yield name, split if has_splits else None, benchmark.load(name, None, **options)
            except QabenchError:  # a config without answers cannot be scored
                continue
