"""Matches the predictions in a file with questions by id, and checks that the texts agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.benchmarks.base import Benchmark
from qabench.data.answers import loads
from qabench.data.predictions import (
    OTHER_ANSWERS,
    Prediction,
    Predictions,
    is_answer_named,
)
from qabench.data.sources import available
from qabench.errors import InputError, QabenchError, some
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts import LEADERBOARD, SHIPPED, dataset_table

# Fields of a prediction: the question's text, whatever the dataset calls it, and
# ``Question.unique_id``.
TEXT = "question"
UNIQUE = "question_id"


def identified(
    benchmark: Benchmark, loaded: Questions, predictions: Predictions, questions: Path | None
) -> tuple[Predictions, list[str]]:
    """Return the predictions with the questions' ids, and notes about those that cannot be checked.

    Args:
        benchmark: the benchmark.
        loaded: the questions that are scored.
        predictions: the content of a file. An id may be ``Question.id`` or ``Question.unique_id``.
        questions: the custom file that the questions are from.

    Raises:
        InputError: a prediction is for a different question than the one with its id, or the
            predictions are the dataset's own answers.
    """
    by_id: dict[str, Question] = {}
    by_unique_id: dict[str, Question] = {}
    for question in loaded.rows:
        by_id[question.id] = question
        if question.unique_id:
            by_unique_id[question.unique_id] = question
    rows: list[Prediction] = []
    different: list[tuple[Prediction, Question]] = []
    unchecked: list[Prediction] = []
    for row in predictions.rows:
        if row.id in by_unique_id and row.id not in by_id:
            rows.append(replace(row, id=by_unique_id[row.id].id))
            continue
        rows.append(row)
        if row.id not in by_id:
            continue
        question = by_id[row.id]
        same = _is_same(row, question)
        if same is None and question.unique_id:
            unchecked.append(row)
        elif same is False:
            different.append((row, question))
    if different:
        raise InputError(_explained(benchmark, loaded, predictions, different, questions))
    notes = _of_dataset(benchmark, by_id, replace(predictions, rows=rows))
    if unchecked and loaded.split is not None and questions is None:
        notes.append(
            f"not checked whether these are predictions for the split {loaded.split}, because other splits have the "
            f"same ids: {len(unchecked)} ({some(unchecked)}); add the field {TEXT!r} or {UNIQUE!r} of the dataset"
        )
    return replace(predictions, rows=rows), notes


def _of_dataset(
    benchmark: Benchmark, by_id: Mapping[str, Question], predictions: Predictions
) -> list[str]:
    """Return a note if the predictions are rows of the dataset with its own answers, or no note.

    Such rows come from ``Dataset.add_column`` and a join: the predictions are in another column.

    Raises:
        InputError: a column that could have the predictions is not read.
    """
    known = [row for row in predictions.rows if row.id in by_id]
    if len(known) < 2 or is_answer_named():
        # One right answer can be the dataset's. A column that the user has named is meant.
        return []
    columns = by_id[known[0].id].row.keys()
    for field in benchmark.prediction_fields:
        # A column of the dataset such as "response" may have been read as the answer.
        for column in (field, *OTHER_ANSWERS):
            if column not in columns or not _is_copied(benchmark, by_id, known, field, column):
                continue
            own = (
                f"{predictions.path}: the column {column!r} has the dataset's own values in all "
                f"{len(known)} predictions"
            )
            for name in sorted(predictions.fields - columns - {field}):
                if name.strip().lower() in (*benchmark.answer_fields, *OTHER_ANSWERS):
                    raise InputError(
                        f"{own}, and {name!r} is not read; leave the dataset's column out, or name the other one "
                        f"(--answer-column {name})"
                    )
            of_dataset = predictions.fields & columns
            if of_dataset - {*benchmark.id_fields, TEXT, UNIQUE, field}:
                return [f"{own}; if another column has the predictions, name it (--answer-column)"]
    return []


def _is_copied(
    benchmark: Benchmark,
    by_id: Mapping[str, Question],
    predictions: Sequence[Prediction],
    field: str,
    column: str,
) -> bool:
    """Tell whether a field of all predictions has the values of a column of the dataset."""
    is_json = column in dataset_table(benchmark.name).json_columns
    has_values = False
    for row in predictions:
        value, own = row.fields.get(field), by_id[row.id].row.get(column)
        is_same = value == own
        if is_json and isinstance(own, str) and not is_same:
            # Parquet keeps the mark of a column of JSON text, so its answers have been parsed.
            is_same = value == loads(own)
        if not is_same:
            return False
        has_values = has_values or value is not None
    return has_values


def _is_same(row: Prediction, question: Question) -> bool | None:
    """Tell whether a prediction's unique id or text is the question's, or None if it has neither."""
    unique_id = row.fields.get(UNIQUE)
    if question.unique_id and isinstance(unique_id, str) and unique_id not in ("", row.id):
        return unique_id == question.unique_id
    text = _text_in(row, question)
    if not text:
        return None
    question_text = _normalized(question.text)
    # The text may be a prompt that contains the question, or a question that a table has truncated.
    return question_text in text or text in question_text


def _text_in(row: Prediction, question: Question) -> str:
    """Return the text of the question in a prediction, or "" if it has none."""
    names = [TEXT]
    for name, value in question.row.items():
        if value == question.text:
            names.append(name)
    for name in names:
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
    """Return the text of the error for predictions of other questions, with their config if known."""
    row, question = different[0]
    text = row.fields.get(TEXT) or row.fields.get(UNIQUE) or _text_in(row, question)
    scored = " ".join(filter(None, (benchmark.name, loaded.config, loaded.split)))
    fix = f"pass the config that they are for, or remove the field if it is not the question of {benchmark.title}"
    rows = [row for row, _ in different]
    if questions is None:
        for config, split, loadable in _loadable_questions(benchmark):
            if (config, split or loadable.split) == (loaded.config, loaded.split):
                continue
            # The predictions are for these questions if all ids and texts agree.
            if not _are_all_for(rows, loadable):
                continue
            dataset = f"config {config!r}"
            if split:
                dataset += f" and split {split!r}"
            fix = f"they are for the {dataset}: score them there"
            break
    return (
        f"{predictions.path}: {len(different)} predictions are for other questions, although {scored} has their ids "
        f"({some(rows)}): the first has the question {text!r:.120}, the dataset {question.text!r:.120}; {fix}"
    )


def _are_all_for(rows: Sequence[Prediction], questions: Questions) -> bool:
    by_id = {question.id: question for question in questions.rows}
    for row in rows:
        if row.id not in by_id or not _is_same(row, by_id[row.id]):
            return False
    return True


def _loadable_questions(benchmark: Benchmark) -> Iterator[tuple[str, str | None, Questions]]:
    """Yield config, split name and questions for every split whose files are on this machine."""
    has_splits = False
    for option in benchmark.options:
        if option.name == "split" and option.method == "load":
            has_splits = True
    table = dataset_table(benchmark.name)
    for name, config in table.configs.items():
        if name == LEADERBOARD:
            continue
        for split, files in config.splits.items():
            # An error message must not start a download.
            downloaded = [file for file in files if not file.startswith(SHIPPED)]
            if not all(available(table.sources[file]) for file in downloaded):
                continue
            options: dict[str, Any] = {}
            named_split = None
            if has_splits:
                options["split"] = named_split = split
            try:
                yield name, named_split, benchmark.load(name, None, **options)
            except QabenchError:
                # A config without answers cannot be scored.
                continue
