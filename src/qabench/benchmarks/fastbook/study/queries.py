"""Queries: the text of a question, or the source's keywords for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.errors import InputError

KINDS = ("question", "keywords")


@dataclass(frozen=True, slots=True)
class Query:
    """A question's id, the chapter whose chunks are its candidates, and the text to search for."""

    id: str
    chapter: int
    text: str


def make_queries(questions: Sequence[Mapping[str, Any]], keywords: Mapping[str, str], kind: str) -> list[Query]:
    """One query per question, in order.

    Quotes around questions and keywords are removed, as in the source.

    Args:
        questions: rows of the dataset's config ``questions``.
        keywords: the keyword text of each question id, as in the config ``keywords``.
        kind: "question" or "keywords".

    Raises:
        InputError: an unknown kind, or a question without keywords.
    """
    if kind not in KINDS:
        raise InputError(f"unknown query {kind!r}; allowed: {', '.join(KINDS)}")
    if kind == "question":
        return [Query(row["id"], row["chapter"], row["question_text"].strip("\"'")) for row in questions]
    if missing := [row["id"] for row in questions if row["id"] not in keywords]:
        raise InputError(f"the questions {', '.join(missing)} have no keywords; use --query question")
    return [Query(row["id"], row["chapter"], keywords[row["id"]].strip("\"'")) for row in questions]


def match_expression(text: str) -> str:
    """The FTS5 query of a text: each of its words quoted, joined with OR; "" for a text without words.

    Words are separated by whitespace and commas, as in the source: "deep learning, math" is a query of three words, not
    of two keywords.
    """
    words = [word.strip(",") for word in text.replace('"', "").split()]
    return " OR ".join(f'"{word}"' for word in words if any(map(str.isalnum, word)))
