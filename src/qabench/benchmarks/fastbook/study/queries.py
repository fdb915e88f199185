"""What is asked of a method: the question's text, or the keywords that the source gives with it."""

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
    """A query for each question, in order.

    The quotes around questions and keywords are dropped, as in the source's study: they are no part of what is asked.

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
        raise InputError(f"there are no keywords for the questions {', '.join(missing)}; use --query question")
    return [Query(row["id"], row["chapter"], keywords[row["id"]].strip("\"'")) for row in questions]


def match_expression(text: str) -> str:
    """The FTS5 query of a text: each of its words quoted, joined with OR; "" for a text without words.

    Words are what white space and the commas of keyword queries part, so that of "deep learning, math" each of the
    three words counts: the source's query, which is not one of two keywords.
    """
    words = [word.strip(",") for word in text.replace('"', "").split()]
    return " OR ".join(f'"{word}"' for word in words if any(map(str.isalnum, word)))
