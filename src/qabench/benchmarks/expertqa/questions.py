"""ExpertQA's questions with their reference answers and annotated answers, as scores, runs and commands read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa.prompts import MARK
from qabench.data.rows import Row, read_json_lines
from qabench.errors import InputError, SourceUnavailable
from qabench.loading_scripts import custom_digest, dataset_table, file_digest, open_path
from qabench.loading_scripts.expertqa.parse import parse_collected, parse_lfqa, parse_question, parser_of

# At the start of a line, perhaps after a mark such as "[1]"; elsewhere it is mostly a link in the text of a page.
_URL = re.compile(r"^[ \t]*+(?:\[[^\]\s]*+\][ \t]*+)?(https?://\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        id: ``example_id`` in the lfqa configs; elsewhere the first 12 hex digits of the SHA-256 of the question's text.
        field: the expert's field; in the lfqa configs, that of the same question in the config questions; or None.
        reference: the reference answer: ``answer`` in the lfqa configs, elsewhere the experts' revised answer without
            citation marks and on one line; None without either.
        groups: its field, types and, for an annotated answer, the system that gave the answer.
        answers: the annotated answers of the row; () if there are none.
    """

    id: str
    text: str
    field: str | None
    reference: str | None
    groups: Mapping[str, Sequence[str]]
    answers: Sequence[Mapping[str, Any]]

    @property
    def annotated_claims(self) -> list[dict[str, Any]]:
        """Return the claims of the annotated answers."""
        return [claim for answer in self.answers for claim in answer["claims"] or ()]


@dataclass(frozen=True)
class Questions:
    """The questions of one split of a config, in order, and the digest of the file they come from."""

    config: str
    split: str
    digest: str
    rows: tuple[Question, ...]

    @cached_property
    def annotated(self) -> bool:
        """Tell whether experts have judged the claims of the answers."""
        return any(claim["support"] is not None for row in self.rows for claim in row.annotated_claims)

    @cached_property
    def evidence_urls(self) -> dict[str, list[str]]:
        """Return the distinct URLs that the annotated claims of all answers to a question name, by the question's id.

        A claim names the URLs of its revised evidence, or else of its evidence, whether or not they support it.
        """
        urls: dict[str, dict[str, None]] = {row.id: {} for row in self.rows}
        for row in self.rows:
            for claim in row.annotated_claims:
                evidence = (claim["revised_evidence"], claim["evidence"]) if claim["support"] is not None else ()
                candidates = (_URL.findall("\n".join(texts or ())) for texts in evidence)
                urls[row.id] |= dict.fromkeys(map(page_key, next(filter(None, candidates), ())))
        return {id: list(of_question) for id, of_question in urls.items()}


def page_key(url: str) -> str:
    """Return a URL without scheme, "www.", fragment, and slash or punctuation at the end; the host in lower case."""
    host, slash, path = re.sub(r"^https?://(www\.)?", "", url.partition("#")[0], flags=re.IGNORECASE).partition("/")
    return (host.lower() + slash + path).rstrip("/.,;")


def load_questions(config: str | None = None, split: str | None = None, file: Path | None = None) -> Questions:
    """Return the questions of a config (None: the default one), or of a custom file.

    A split of None means "test" if the config has it, else its first split. ``file`` is JSONL in the format of one of
    the authors' files, used instead of the config's questions.
    """
    if file is not None:
        digest, rows = custom_digest(file), tuple(_questions(file, None))
        if not rows:
            raise InputError(f"the file {file} has no questions")
        return Questions(config or "custom", "custom", digest, rows)
    table = dataset_table("expertqa").config(config)
    name = split or ("test" if "test" in table.splits else next(iter(table.splits)))
    if name not in table.splits:
        raise InputError(f"expertqa {table.name} has no split {split!r}; allowed: {', '.join(table.splits)}")
    (path,) = table.splits[name]
    rows = tuple(_questions(open_path("expertqa", path), table.name))
    return Questions(table.name, name, file_digest("expertqa", path), rows)


def _questions(path: Path, config: str | None) -> Iterator[Question]:
    for row in read_json_lines(path):
        parsed = _parsed(row, config)
        metadata = parsed.get("metadata")
        answers = parsed.get("answers", ())
        groups = {"field": [metadata["field"]], "question type": metadata["question_type"]} if metadata else {}
        if answers:
            groups["system"] = [answer["system"] for answer in answers]
        yield Question(
            id=parsed["id"],
            text=parsed["question"],
            field=metadata["field"] if metadata else _fields().get(parsed["question"]),
            reference=_reference(parsed),
            groups=groups,
            answers=answers,
        )


@cache
def _fields() -> dict[str, str]:
    """Return question -> field in the config questions; empty if its file is not available."""
    ((path,),) = dataset_table("expertqa").config("questions").splits.values()
    try:
        rows = map(parse_question, read_json_lines(open_path("expertqa", path)))
        return {row["question"]: row["metadata"]["field"] for row in rows}
    except SourceUnavailable:
        return {}


def _parsed(row: Row, config: str | None) -> dict[str, Any]:
    if config is not None:
        return parser_of(config)(row)
    if "example_id" in row.fields:  # a custom file
        return parse_lfqa(row)
    return parse_collected(row) if row.fields.get("answers") else parse_question(row)


def _reference(row: Mapping[str, Any]) -> str | None:
    if "answer" in row:
        return str(row["answer"])
    revised = (answer["revised_answer_string"] for answer in row.get("answers", ()))
    return next((MARK.sub("", text).replace("\n", " ") for text in revised if text), None)
