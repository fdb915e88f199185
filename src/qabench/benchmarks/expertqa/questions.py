"""ExpertQA's questions with their reference answers and annotated answers, as scores, runs and commands read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from qabench.benchmarks.expertqa.prompts import MARK
from qabench.data.rows import Json, Row, SourceRow, read_json_lines
from qabench.errors import InputError, SourceUnavailable
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts import custom_digest, dataset_table, file_digest, open_path
from qabench.loading_scripts.expertqa.parse import (
    parse_collected,
    parse_lfqa,
    parse_question,
    parser_of,
)

# At the start of a line, perhaps after a mark such as "[1]". Elsewhere it is mostly a link in the
# text of a page.
_URL = re.compile(r"^[ \t]*+(?:\[[^\]\s]*+\][ \t]*+)?(https?://\S+)", re.MULTILINE)


def annotated_claims(row: Row) -> list[Row]:
    """Return the claims of the annotated answers of a row."""
    return [claim for answer in row.get("answers", ()) for claim in answer["claims"] or ()]


def is_judged(claims: Sequence[Row]) -> bool:
    """Tell whether experts have judged some of the claims."""
    return any(claim["support"] is not None for claim in claims)


def page_key(url: str) -> str:
    """Return a URL without scheme, "www.", fragment, and slash or punctuation at the end.

    The host in lower case.
    """
    host, slash, path = re.sub(
        r"^https?://(www\.)?", "", url.partition("#")[0], flags=re.IGNORECASE
    ).partition("/")
    return (host.lower() + slash + path).rstrip("/.,;")


def load_questions(
    config: str | None = None, split: str | None = None, file: Path | None = None
) -> Questions:
    """Return the questions of a config (None: the default one), or of a custom file.

    A row of the dataset is returned with three more columns: field (the expert's field, in the lfqa
    configs from the same question in the config questions, or None), reference (the reference
    answer, or None), and evidence_urls (see ``named_urls``). An id is ``example_id`` in the lfqa
    configs, and elsewhere the first 12 hex digits of the SHA-256 of the question's text.

    A split of None means "test" if the config has it, else its first split. ``file`` is JSONL in
    the format of one of the authors' files, used instead of the config's questions.
    """
    if file is not None:
        digest, rows = custom_digest(file), _rows(file, None)
        if not rows:
            raise InputError(f"the file {file} has no questions")
        return Questions(config or "custom", digest, _questions(rows), "custom")
    table = dataset_table("expertqa").config(config)
    name = split or ("test" if "test" in table.splits else next(iter(table.splits)))
    if name not in table.splits:
        raise InputError(
            f"expertqa {table.name} has no split {split!r}; allowed: {', '.join(table.splits)}"
        )
    (path,) = table.splits[name]
    rows = _rows(open_path("expertqa", path), table.name)
    return Questions(table.name, file_digest("expertqa", path), _questions(rows), name)


def _rows(path: Path, config: str | None) -> list[Json]:
    return [_parsed(row, config) for row in read_json_lines(path)]


def _questions(rows: Sequence[Json]) -> list[Question]:
    urls = named_urls(rows)
    return [_question(row, urls[row["id"]]) for row in rows]


def _question(row: Json, urls: Sequence[str]) -> Question:
    metadata = row.get("metadata")
    reference = _reference(row)
    field = metadata["field"] if metadata else _fields().get(row["question"])
    groups = (
        {"field": [metadata["field"]], "question type": metadata["question_type"]}
        if metadata
        else {}
    )
    if answers := row.get("answers"):
        groups["system"] = [answer["system"] for answer in answers]
    row |= {"field": field, "reference": reference, "evidence_urls": urls}
    return Question(row["id"], row["question"], reference or "", groups, row)


def named_urls(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the distinct URLs that the annotated claims of all answers to a question name, by the question's id.

    A claim names the URLs of its revised evidence, or else of its evidence, whether or not they
    support it.
    """
    urls: dict[str, dict[str, None]] = {row["id"]: {} for row in rows}
    for row in rows:
        for claim in annotated_claims(row):
            if claim["support"] is None:
                continue
            revised, original = (
                _URL.findall("\n".join(claim[name] or ()))
                for name in ("revised_evidence", "evidence")
            )
            urls[row["id"]] |= dict.fromkeys(map(page_key, revised or original))
    return {id: list(of_question) for id, of_question in urls.items()}


@cache
def _fields() -> dict[str, str]:
    """Return question -> field in the config questions.

    Empty if its file is not available.
    """
    ((path,),) = dataset_table("expertqa").config("questions").splits.values()
    try:
        rows = map(parse_question, read_json_lines(open_path("expertqa", path)))
        return {row["question"]: row["metadata"]["field"] for row in rows}
    except SourceUnavailable:
        return {}


def _parsed(row: SourceRow, config: str | None) -> Json:
    if config is not None:
        return parser_of(config)(row)
    if "example_id" in row.fields:  # a custom file
        return parse_lfqa(row)
    return parse_collected(row) if row.fields.get("answers") else parse_question(row)


def _reference(row: Row) -> str | None:
    if "answer" in row:
        return str(row["answer"])
    revised = (answer["revised_answer_string"] for answer in row.get("answers", ()))
    return next((MARK.sub("", text).replace("\n", " ") for text in revised if text), None)
