"""Split the answers of a file into claims. The module ``claims`` splits a single answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qabench.benchmarks.expertqa.claim_lines import ClaimsLine
from qabench.benchmarks.expertqa.claims import split_claims
from qabench.benchmarks.expertqa.fields import (
    Sources,
    answer_of,
    sources_of,
    unresolved_marks,
    with_plain_marks,
)
from qabench.data.predictions import Predictions
from qabench.errors import InputError

# Fields that the commands write about the claims of a line. They are wrong once the answer is split
# again.
FIELDS_ABOUT_CLAIMS = ("claims", "labels_by", "labels_of", "fact_scores_by", "atomic_claims_by")
# The note about an answer shows at most this many of its citation marks that are not read.
MAX_MARKS_SHOWN = 3


@dataclass(slots=True)
class SplitAnswers:
    """The answers of a file split into claims, and notes for the user.

    Attributes:
        lines: the lines with claims.
        skipped: answers that cannot be split, with line, id and reason.
        read: the names of the fields from which sources were read.
        ignored: the names of fields with lists that were not read.
        unresolved: citation marks without a source or in the wrong place, with the answer's id.
        unmarked: the ids of answers that have sources and cite none of them.
    """

    lines: list[ClaimsLine] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _SplitAnswer:
    """An answer split into claims.

    Attributes:
        line: the line with the claims.
        sources: the sources that its citation marks refer to.
        unresolved: the citation marks that are not read.
        is_unmarked: whether the answer has sources and cites none of them.
    """

    line: ClaimsLine
    sources: Sources
    unresolved: list[str]
    is_unmarked: bool


def split_predictions(predictions: Predictions, *, plain_marks: bool = False) -> SplitAnswers:
    """Split the answers of a file into claims.

    A line has "answer", optionally "system" (the authors have special rules for "bing_chat"), and
    "attribution", a list of strings, if the answer cites sources. The module ``fields`` lists other
    names for these fields. All other fields are passed on. With ``plain_marks``, citations are also
    read where the authors' splitter ignores or misplaces them, such as [1, 2] or marks after a
    period.

    Raises:
        InputError: no answer can be split. The message is about the first one.
    """
    answers = SplitAnswers()
    # Dicts as ordered sets: fields are reported in first-seen order.
    read: dict[str, None] = {}
    ignored: dict[str, None] = {}
    for row in predictions.rows:
        try:
            answer = _split(row.fields, row.id, plain_marks)
        except InputError as error:
            answers.skipped.append(f"line {row.line} (id {row.id:.80}): {error}")
            continue
        answers.lines.append(answer.line)
        if answer.unresolved:
            marks = ", ".join(answer.unresolved[:MAX_MARKS_SHOWN])
            answers.unresolved.append(f"{marks} of {row.id:.80}")
        if answer.is_unmarked:
            answers.unmarked.append(row.id)
        if answer.sources.field:
            read[answer.sources.field] = None
        ignored |= dict.fromkeys(answer.sources.ignored)
    if not answers.lines:
        raise InputError(f"{predictions.path}, {answers.skipped[0]}")
    answers.read.extend(read)
    # A field may be read in one line, and ignored in another, which has sources in a preferred field.
    # It then counts as read.
    answers.ignored.extend(name for name in ignored if name not in read)
    return answers


def _split(fields: Mapping[str, Any], id: str, plain_marks: bool) -> _SplitAnswer:
    """Split the answer of a line.

    Raises:
        InputError: the answer or its sources have another type, or the answer is too long.
    """
    answer, _ = answer_of(fields)
    if not isinstance(answer, str | None):
        raise InputError(f"the answer is {answer!r:.40}; allowed: a string or null")
    sources = sources_of(fields)
    text = answer or ""
    if plain_marks:
        text = with_plain_marks(text)
    split = split_claims(text, sources.texts, bing=fields.get("system") == "bing_chat")
    # Unknown fields, such as another tool's, are passed on.
    line: ClaimsLine = dict(fields)
    for name in FIELDS_ABOUT_CLAIMS:
        line.pop(name, None)
    line["id"] = id
    # A missing answer (None) and an empty one are different predictions, so both stay as they are.
    line["answer"] = answer
    if answer:
        line["answer"] = split.answer
    line["claims"] = split.claims
    if plain_marks:
        line["citations"] = "plain marks"
    cites_sources = any(claim["evidence"] for claim in split.claims)
    return _SplitAnswer(
        line,
        sources,
        unresolved=unresolved_marks(text, len(sources.texts)),
        is_unmarked=bool(sources.texts and answer) and not cites_sources,
    )
