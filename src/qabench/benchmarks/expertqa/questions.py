"""ExpertQA's questions with their reference answers and annotated answers, as scores, runs and commands read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from qabench.benchmarks.expertqa.prompts import MARK
from qabench.data.rows import Json, Row, SourceRow, read_json_lines
from qabench.errors import InputError, SourceUnavailable
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts import custom_digest, dataset_table, file_digest, open_path
from qabench.loading_scripts.expertqa.parse import parse_answers, parse_lfqa, parse_question, parser_of


def annotated_claims(row: Row) -> list[Row]:
    """Return the claims of the annotated answers of a row."""
    return [claim for answer in row.get("answers", ()) for claim in answer["claims"] or ()]


def is_judged(claims: Sequence[Row]) -> bool:
    """Tell whether experts have judged some of the claims."""
    return any(claim["support"] is not None for claim in claims)


def load_questions(
    config: str | None = None, split: str | None = None, file: Path | None = None
) -> Questions:
    """Return the questions of a config (None: the default one), or of a custom file.

    A row of the dataset is returned with two more columns: field (the expert's field, in the lfqa
    configs from the same question in the config questions, or None), and reference (the reference
    answer, or None). An id is ``example_id`` in the lfqa
    configs, whose splits have the same ids, and elsewhere the first 12 hex digits of the SHA-256 of
    the question's text, which is ``question_id`` in the lfqa configs.

    A split of None means "test" if the config has it, else its first split. ``file`` is JSONL in
    the format of one of the authors' files, used instead of the config's questions.
    """
    if file is not None:
        digest, questions = custom_digest(file), _questions(file, None)
        if not questions:
            raise InputError(f"the file {file} has no questions")
        return Questions(config or "custom", digest, questions, "custom")
    table = dataset_table("expertqa").config(config)
    name = split or ("test" if "test" in table.splits else next(iter(table.splits)))
    if name not in table.splits:
        raise InputError(
            f"expertqa {table.name} has no split {split!r}; allowed: {', '.join(table.splits)}"
        )
    (path,) = table.splits[name]
    questions = _questions(open_path("expertqa", path), table.name)
    return Questions(table.name, file_digest("expertqa", path), questions, name)


def _questions(path: Path, config: str | None) -> list[Question]:
    return [_question(_parsed(row, config)) for row in read_json_lines(path)]


def _question(row: Json) -> Question:
    reference, groups = _reference(row), {}
    # The lfqa configs have no metadata: it is that of the same question in the config questions.
    metadata = row.get("metadata") or _metadata().get(row["question"])
    if metadata:
        groups = {"field": [metadata["field"]], "question type": metadata["question_type"]}
    if answers := row.get("answers"):
        groups["system"] = [answer["system"] for answer in answers]
    row |= {"field": metadata["field"] if metadata else None, "reference": reference}
    return Question(row["id"], row["question"], reference or "", groups, row, row.get("question_id"))


@cache
def _metadata() -> dict[str, Json]:
    """Return question -> metadata in the config questions.

    Empty if its file is not available.
    """
    ((path,),) = dataset_table("expertqa").config("questions").splits.values()
    try:
        rows = map(parse_question, read_json_lines(open_path("expertqa", path)))
        return {row["question"]: row["metadata"] for row in rows}
    except SourceUnavailable:
        return {}


def _parsed(row: SourceRow, config: str | None) -> Json:
    if config is not None:
        return parser_of(config)(row)
    if "example_id" in row.fields:  # a custom file
        return parse_lfqa(row)
    return parse_answers(row) if row.fields.get("answers") else parse_question(row)


def _reference(row: Row) -> str | None:
    if "answer" in row:
        return str(row["answer"])
    revised = (answer["revised_answer_string"] for answer in row.get("answers", ()))
    return next((MARK.sub("", text).replace("\n", " ") for text in revised if text), None)
