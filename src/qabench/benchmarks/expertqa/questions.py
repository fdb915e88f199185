"""ExpertQA's questions with their reference answers and annotated answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from qabench.benchmarks.expertqa.prompts import MARK
from qabench.data.rows import Json, Row, SourceRow, read_json_lines
from qabench.errors import InputError, SourceUnavailable
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts import custom_digest, dataset_table
from qabench.loading_scripts.expertqa.parse import (
    parse_answers,
    parse_lfqa,
    parse_question,
    parser_of,
)


def annotated_claims(row: Row) -> list[Row]:
    """Return the claims of the annotated answers of a row."""
    claims: list[Row] = []
    for answer in row.get("answers", ()):
        claims += answer["claims"] or ()
    return claims


def is_judged(claims: Sequence[Row]) -> bool:
    """Tell whether experts have judged some of the claims."""
    return any(claim["support"] is not None for claim in claims)


def load_questions(
    config: str | None = None, split: str | None = None, file: Path | None = None
) -> Questions:
    """Return the questions of a config (by default, the default config), or of a custom file.

    A row of the dataset gets two more columns. ``field`` is the expert's field, or None. The lfqa
    configs lack it, so there it is taken from the same question in the config questions.
    ``reference`` is the reference answer, or None.

    A question's id is the first 12 hex digits of the SHA-256 of its text. In the lfqa configs,
    however, the id is ``example_id``, which is unique only within a split, and the digits are in the
    column ``question_id``.

    If ``split`` is None, it is "test" if the config has it, else the first split. ``file`` is JSONL
    in the format of one of the authors' files, and replaces the config's questions.
    """
    if file is not None:
        digest, questions = custom_digest(file), _questions(file, None)
        if not questions:
            raise InputError(f"the file {file} has no questions")
        return Questions(config or "custom", digest, questions, "custom")
    table = dataset_table("expertqa").config(config)
    default_split = "test" if "test" in table.splits else next(iter(table.splits))
    name = split or default_split
    if name not in table.splits:
        raise InputError(
            f"expertqa {table.name} has no split {split!r}; allowed: {', '.join(table.splits)}"
        )
    (path,) = table.splits[name]
    questions = _questions(dataset_table("expertqa").open_path(path), table.name)
    return Questions(table.name, dataset_table("expertqa").file_digest(path), questions, name)


def _questions(path: Path, config: str | None) -> list[Question]:
    return [_question(_parsed(row, config)) for row in read_json_lines(path)]


def _question(row: Json) -> Question:
    reference = reference_of(row)
    row["field"] = None
    row["reference"] = reference
    groups = {}
    # The lfqa configs lack metadata, so it is taken from the same question in the config questions.
    metadata = row.get("metadata") or _metadata().get(row["question"])
    if metadata:
        row["field"] = metadata["field"]
        groups = {"field": [metadata["field"]], "question type": metadata["question_type"]}
    if answers := row.get("answers"):
        groups["system"] = [answer["system"] for answer in answers]
    return Question(
        row["id"], row["question"], reference or "", groups, row, row.get("question_id")
    )


@cache
def _metadata() -> dict[str, Json]:
    """Return the metadata in the config ``questions`` by question, or {} without its file."""
    ((path,),) = dataset_table("expertqa").config("questions").splits.values()
    try:
        source_rows = read_json_lines(dataset_table("expertqa").open_path(path))
        rows = map(parse_question, source_rows)
        return {row["question"]: row["metadata"] for row in rows}
    except SourceUnavailable:
        return {}


def _parsed(row: SourceRow, config: str | None) -> Json:
    if config is not None:
        return parser_of(config)(row)
    # A custom file has the format of one of the authors' files. Only lfqa files have this field.
    if "example_id" in row.fields:
        return parse_lfqa(row)
    if row.fields.get("answers"):
        return parse_answers(row)
    return parse_question(row)


def reference_of(row: Row) -> str | None:
    """Return the reference answer of a question or a row of the dataset, or None if it has none."""
    if "reference" in row:
        reference: str | None = row["reference"]
        return reference
    if "answer" in row:
        return str(row["answer"])
    for answer in row.get("answers", ()):
        revised = answer["revised_answer_string"]
        if revised:
            # The reference answers in the authors' lfqa files were made like this.
            return MARK.sub("", revised).replace("\n", " ")
    return None
