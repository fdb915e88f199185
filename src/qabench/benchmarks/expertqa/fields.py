"""The fields of answers, evidence and labels as other tools name them, and the citation marks of answers.

ExpertQA's own names are ``answer``, ``attribution``, ``evidence`` and ``label``. ALCE writes ``output`` and
``docs``, RAGAS ``response`` and ``retrieved_contexts`` or, in older versions, ``answer`` and ``contexts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qabench.errors import InputError
from qabench.io.limits import MAX_REPLY_CHARACTERS, json_of
from qabench.io.tables import quoted

ANSWER_FIELDS = ("answer", "output", "response")
EVIDENCE_FIELDS = (
    *("attribution", "evidence", "contexts", "retrieved_contexts"),
    *("docs", "documents", "passages", "sources", "ctxs"),
)
TEXT_FIELDS = ("text", "content", "page_content", "snippet")  # of a source that is an object
HEADING_FIELDS = ("url", "source", "title")
# Lists of strings or objects under these names are parts of other formats, never evidence.
OTHER_LISTS = {"claims", "qa_pairs", "annotations", "answers", "references", "labels"}

SUPPORTED = {"y", "yes", "true", "1", "1.0", "complete", "supported", "entailed", "entailment"}
UNSUPPORTED = {
    *("n", "no", "false", "0", "0.0", "incomplete", "partial", "missing", "unsupported"),
    *("not supported", "not entailed", "neutral", "contradiction"),
}
LABELS = '"Y" or "N", true or false, 1 or 0, Complete or Incomplete (also Partial, Missing), or null'

SQUARE_MARK = re.compile(r"\[(\d{1,4})\]")
# [1, 2], [1; 2], [1-3] and marks in other brackets, which the authors' splitter does not read
LIST_MARK = re.compile(r"\[\s*(\d{1,4}(?:\s*[,;–-]\s*\d{1,4})+)\s*\]")
LENTICULAR_MARK = re.compile(r"【\s*(\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*)[^】\n]{0,80}】")
# A mark after the end of a sentence belongs to it: "Ice floats. [2]"
MARK_AFTER_END = re.compile(r"([.!?])((?:[ \t]*\[\d{1,4}\])+)(?=\s|$)")
MOST_IN_RANGE = 100


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of an answer, the field that has them (None: no field), and other fields that have lists."""

    texts: list[str]
    field: str | None
    ignored: tuple[str, ...]


def answer_of(fields: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the answer of a line, and the name of its field."""
    name = next((name for name in ANSWER_FIELDS if name in fields), ANSWER_FIELDS[0])
    return fields.get(name), name


def sources_of(fields: Mapping[str, Any]) -> Sources:
    """Return the sources that the marks of an answer refer to, from the first field that has any.

    Raises InputError if they are not texts.
    """
    named = [name for name in EVIDENCE_FIELDS if fields.get(name)]
    unread = [
        name
        for name, value in fields.items()
        if name not in (*named[:1], *OTHER_LISTS) and value and _is_like_sources(value)
    ]
    if not named:
        return Sources([], None, tuple(unread))
    values = fields[named[0]]
    if not isinstance(values, list):
        raise InputError(
            f"its {named[0]} is {quoted(values, 40)}; allowed: a list of strings or of objects with text"
        )
    texts = [_text_of(value, f"{named[0]}[{position}]") for position, value in enumerate(values)]
    return Sources(texts, named[0], tuple(unread))


def _is_like_sources(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str | dict) for item in value)


def _text_of(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    fields = value if isinstance(value, Mapping) else {}
    text = next((fields[name] for name in TEXT_FIELDS if isinstance(fields.get(name), str)), None)
    if text is None:
        raise InputError(
            f"its {where} is {quoted(value, 40)}; allowed: a string, or an object with {' or '.join(TEXT_FIELDS)}"
        )
    heading = next((fields[name] for name in HEADING_FIELDS if isinstance(fields.get(name), str)), "")
    return f"{heading}\n\n{text}" if heading else text


def listed(claims: Any) -> Any:
    """Return the claims of a line, which are JSON in a cell of a CSV file."""
    if not isinstance(claims, str):
        return claims
    try:
        return json_of(claims.encode(), MAX_REPLY_CHARACTERS)
    except ValueError:
        return claims


def label_of(value: Any) -> Any:
    """Return "Y", "N" or None for a label of any judge, or the value itself if it is none."""
    if value is None or isinstance(value, bool):
        return None if value is None else "Y" if value else "N"
    text = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    if text in SUPPORTED:
        return "Y"
    return "N" if text in UNSUPPORTED else value


def unresolved_marks(answer: str, n_sources: int) -> list[str]:
    """Return the marks of an answer that the authors' splitter gives to no claim, or to the claim after them."""
    marks = [match[0] for pattern in (LIST_MARK, LENTICULAR_MARK) for match in pattern.finditer(answer)]
    numbers = list(SQUARE_MARK.finditer(answer))
    marks += [match[0] for match in numbers if int(match[1]) > n_sources]
    marks += [
        match[0]
        for after in MARK_AFTER_END.finditer(answer)
        for match in SQUARE_MARK.finditer(after[2])
        if int(match[1]) <= n_sources
    ]
    return marks


def with_plain_marks(answer: str) -> str:
    """Return an answer with all its citations as marks such as [1][2] before the end of their sentence.

    It differs from the authors' reading of answers, so that scores of its claims are not official.
    """
    for pattern in (LENTICULAR_MARK, LIST_MARK):
        answer = pattern.sub(
            lambda match: "".join(f"[{number}]" for number in _numbers(match[1])), answer
        )
    return MARK_AFTER_END.sub(lambda match: f" {''.join(match[2].split())}{match[1]}", answer)


def _numbers(text: str) -> list[int]:
    """Return the numbers in "1, 2" or "1-3"."""
    numbers: list[int] = []
    for part in re.split("[,;]", text):
        first, *rest = [int(number) for number in re.split("[–-]", part)]
        last = rest[-1] if rest else first
        in_order = first <= last < first + MOST_IN_RANGE
        numbers += range(first, last + 1) if in_order else [first, *rest]
    return numbers
