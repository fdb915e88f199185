"""How other tools name and write answers, evidence, labels and citation marks.

ExpertQA's own names are ``answer``, ``attribution``, ``evidence`` and ``label``. ALCE writes
``output`` and ``docs``. RAGAS writes ``response`` and ``retrieved_contexts``, and its older versions
``answer`` and ``contexts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.errors import InputError
from qabench.io.limits import MAX_REPLY_CHARACTERS, json_of
from qabench.io.redaction import quoted

ANSWER_FIELDS = ("answer", "output", "response")
EVIDENCE_FIELDS = (
    "attribution",
    "evidence",
    "contexts",
    "retrieved_contexts",
    "docs",
    "documents",
    "passages",
    "sources",
    "ctxs",
)
# A source may be an object whose text and heading have one of these names.
TEXT_FIELDS = ("text", "content", "page_content", "snippet")
HEADING_FIELDS = ("url", "source", "title")
# Lists with these names are something else in other formats. They are never read as evidence.
OTHER_LISTS = {"claims", "qa_pairs", "annotations", "answers", "references", "labels"}

# pandas turns 1 into 1.0 in a column with nulls, so "1.0" is a label, too.
SUPPORTED = {"y", "yes", "true", "1", "1.0", "complete", "supported", "entailed", "entailment"}
UNSUPPORTED = {
    "n",
    "no",
    "false",
    "0",
    "0.0",
    "incomplete",
    "partial",
    "missing",
    "unsupported",
    "not supported",
    "not entailed",
    "neutral",
    "contradiction",
}
LABELS = (
    '"Y" or "N", true or false, 1 or 0, Complete or Incomplete (also Partial, Missing), or null'
)

# Marks have at most 4 digits, so that a search takes linear time.
SQUARE_MARK = re.compile(r"\[(\d{1,4})\]")
# The authors' splitter reads neither [1, 2], [1; 2] and [1-3] nor marks in other brackets.
LIST_MARK = re.compile(r"\[\s*(\d{1,4}(?:\s*[,;–-]\s*\d{1,4})+)\s*\]")
# ChatGPT's marks have more text after the number, such as 【1†source】.
LENTICULAR_MARK = re.compile(r"【\s*(\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*)[^】\n]{0,80}】")
# A citation mark directly after a sentence belongs to that sentence: "Ice floats. [2]"
MARK_AFTER_END = re.compile(r"([.!?])((?:[ \t]*\[\d{1,4}\])+)(?=\s|$)")
# Of a longer range, such as [3-1999], only the two bounds are read as citations.
MAX_IN_RANGE = 100


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of an answer.

    Attributes:
        texts: the sources.
        field: the name of the field with the sources, or None if there are no sources.
        ignored: the names of other fields with lists.
    """

    texts: list[str]
    field: str | None
    ignored: tuple[str, ...]


def answer_of(fields: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the answer of a line, and the name of its field."""
    for name in ANSWER_FIELDS:
        if name in fields:
            return fields[name], name
    return None, ANSWER_FIELDS[0]


def sources_of(fields: Mapping[str, Any]) -> Sources:
    """Return the sources that the marks of an answer refer to, from the first field that has any.

    Raises:
        InputError: the sources are not strings, or objects with text.
    """
    field = None
    for name in EVIDENCE_FIELDS:
        if fields.get(name):
            field = name
            break
    ignored = []
    for name, value in fields.items():
        if name != field and name not in OTHER_LISTS and _is_like_sources(value):
            ignored.append(name)
    if field is None:
        return Sources([], None, tuple(ignored))
    values = fields[field]
    if not isinstance(values, list):
        raise InputError(
            f"its {field} is {quoted(values, 40)}; allowed: a list of strings or of objects with text"
        )
    texts = [_text_of(value, f"{field}[{position}]") for position, value in enumerate(values)]
    return Sources(texts, field, tuple(ignored))


def _is_like_sources(value: Any) -> bool:
    is_full_list = isinstance(value, list) and value != []
    return is_full_list and all(isinstance(item, str | dict) for item in value)


def _text_of(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    text = _first_string(value, TEXT_FIELDS)
    if text is None:
        raise InputError(
            f"its {where} is {quoted(value, 40)}; allowed: a string, or an object with {' or '.join(TEXT_FIELDS)}"
        )
    heading = _first_string(value, HEADING_FIELDS)
    return f"{heading}\n\n{text}" if heading else text


def _first_string(value: Any, names: Sequence[str]) -> str | None:
    if isinstance(value, Mapping):
        for name in names:
            if isinstance(value.get(name), str):
                return str(value[name])
    return None


def listed(claims: Any) -> Any:
    """Return the claims of a line. A string, such as a cell of a CSV file, is parsed as JSON."""
    if not isinstance(claims, str):
        return claims
    try:
        return json_of(claims.encode(), MAX_REPLY_CHARACTERS)
    except ValueError:
        return claims


def label_of(value: Any) -> Any:
    """Return "Y" or "N" for a label in any known form. Other values are returned unchanged."""
    # bool is an int, and the words contain "true" and "false".
    if not isinstance(value, str | int | float):
        return value
    text = str(value).strip().lower()
    if text in SUPPORTED:
        return "Y"
    if text in UNSUPPORTED:
        return "N"
    return value


def unresolved_marks(answer: str, n_sources: int) -> list[str]:
    """Return the citation marks that the authors' splitter ignores or gives to the next sentence."""
    marks = []
    for pattern in (LIST_MARK, LENTICULAR_MARK):
        for match in pattern.finditer(answer):
            marks.append(match[0])
    for match in SQUARE_MARK.finditer(answer):
        if int(match[1]) > n_sources:
            marks.append(match[0])
    for after_end in MARK_AFTER_END.finditer(answer):
        for match in SQUARE_MARK.finditer(after_end[2]):
            if int(match[1]) <= n_sources:
                marks.append(match[0])
    return marks


def with_plain_marks(answer: str) -> str:
    """Rewrite the citations of an answer as marks such as [1][2] before the end of their sentence.

    The authors read citations differently, so scores of the resulting claims are not official.
    """

    def single_marks(match: re.Match[str]) -> str:
        return "".join(f"[{number}]" for number in _numbers(match[1]))

    def marks_before_end(match: re.Match[str]) -> str:
        end, marks = match[1], "".join(match[2].split())
        return f" {marks}{end}"

    answer = LENTICULAR_MARK.sub(single_marks, answer)
    answer = LIST_MARK.sub(single_marks, answer)
    return MARK_AFTER_END.sub(marks_before_end, answer)


def _numbers(text: str) -> list[int]:
    """Return the numbers in "1, 2" or "1-3"."""
    numbers: list[int] = []
    for item in re.split("[,;]", text):
        bounds = [int(number) for number in re.split("[–-]", item)]
        first, last = bounds[0], bounds[-1]
        if first <= last < first + MAX_IN_RANGE:
            numbers += range(first, last + 1)
        else:
            numbers += bounds
    return numbers
