"""Files of claims, which the ``qabench expertqa`` commands read and write.

A line is {"id", "answer", "claims": [{"claim", "evidence", "label", "fact_score", ...}]}.
``qabench score expertqa`` reads such files, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa.claims import cited, split_claims
from qabench.benchmarks.expertqa.fields import (
    EVIDENCE_FIELDS,
    LABELS,
    Sources,
    answer_of,
    label_of,
    listed,
    sources_of,
    unresolved_marks,
    with_plain_marks,
)
from qabench.benchmarks.expertqa.questions import annotated_claims, is_judged
from qabench.data.answers import is_list_of
from qabench.data.predictions import Predictions, read_predictions
from qabench.data.rows import Json, Row
from qabench.errors import InputError
from qabench.evaluation.scoring import Questions
from qabench.io.files import write_text

# Fields that the commands write about the claims of a line. They are wrong once the answer is split
# again.
FIELDS_ABOUT_CLAIMS = ("claims", "labels_by", "labels_of", "fact_scores_by", "atomic_claims_by")

Item = dict[str, Any]
"""A line of a file of claims."""


@dataclass(frozen=True, slots=True)
class SplitAnswers:
    """The answers of a file split into claims, and notes for the user.

    Attributes:
        items: the lines with claims.
        skipped: answers that cannot be split, with line, id and reason.
        read: the names of the fields from which sources were read.
        ignored: the names of fields with lists that were not read.
        unresolved: citation marks without a source or in the wrong place, with the answer's id.
        unmarked: the ids of answers that have sources and cite none of them.
    """

    items: list[Item]
    skipped: list[str]
    read: list[str]
    ignored: list[str]
    unresolved: list[str]
    unmarked: list[str]


def split_predictions(predictions: Predictions, *, plain_marks: bool = False) -> SplitAnswers:
    """Split the answers of a file into claims.

    A line has "answer", optionally "system" (the authors have special rules for "bing_chat"), and
    "attribution", a list of strings, if the answer cites sources. The module ``fields`` has other
    names of these fields. All other fields are passed on. With ``plain_marks``, citations are also
    read where the authors' splitter ignores or misplaces them, such as [1, 2] or marks after a full
    stop.

    Raises:
        InputError: no answer can be split. The message is about the first one.
    """
    split_answers = SplitAnswers([], [], [], [], [], [])
    # Dicts as ordered sets: fields are reported in first-seen order.
    read: dict[str, None] = {}
    ignored: dict[str, None] = {}
    for row in predictions.rows:
        try:
            item, sources = _split_row(row.fields, row.id, split_answers, plain_marks)
        except InputError as error:
            split_answers.skipped.append(f"line {row.line} (id {row.id:.80}): {error}")
            continue
        split_answers.items.append(item)
        if sources.field:
            read[sources.field] = None
        ignored |= dict.fromkeys(sources.ignored)
    if not split_answers.items:
        raise InputError(f"{predictions.path}, {split_answers.skipped[0]}")
    split_answers.read.extend(read)
    split_answers.ignored.extend(name for name in ignored if name not in read)
    return split_answers


def _split_row(
    fields: Mapping[str, Any], id: str, notes: SplitAnswers, plain_marks: bool
) -> tuple[Item, Sources]:
    answer, _ = answer_of(fields)
    if not isinstance(answer, str | None):
        raise InputError(f"the answer is {answer!r:.40}; allowed: a string or null")
    sources = sources_of(fields)
    text = answer or ""
    if plain_marks:
        text = with_plain_marks(text)
    split = split_claims(text, sources.texts, bing=fields.get("system") == "bing_chat")
    marks = unresolved_marks(text, len(sources.texts))
    if marks:
        notes.unresolved.append(f"{', '.join(marks[:3])} of {id:.80}")
    if sources.texts and answer and not any(claim["evidence"] for claim in split.claims):
        notes.unmarked.append(id)
    # Fields that are not known here, such as those of another tool, are passed on.
    item: Item = dict(fields)
    for name in FIELDS_ABOUT_CLAIMS:
        item.pop(name, None)
    item["id"] = id
    # A missing answer (None) and an empty one are different predictions, so both stay as they are.
    item["answer"] = answer
    if answer:
        item["answer"] = split.answer
    item["claims"] = split.claims
    if plain_marks:
        item["citations"] = "plain marks"
    return item, sources


def read_items(file: str) -> list[Item]:
    """Return the lines of a file of claims.

    Raises:
        InputError: the file cannot be read, or a line has another format. The message names the
            line.
    """
    predictions = read_predictions(file, ("claims",))
    for bad in predictions.bad_lines:
        raise InputError(f"{predictions.path}, line {bad.line}: {bad.reason}")
    items = []
    for row in predictions.rows:
        try:
            claims = read_claims(row.fields["claims"])
        except InputError as error:
            raise InputError(
                f"{predictions.path}, line {row.line} (id {row.id:.80}): {error}"
            ) from None
        items.append({**row.fields, "id": row.id, "claims": claims})
    return items


def read_claims(claims: Any) -> list[Json]:
    """Return claims with "evidence" as a list of strings and "label" as "Y", "N" or None.

    Other names of evidence and other forms of labels are read, too (see ``fields``). A string is a
    claim without evidence. The text in a cell of a CSV file is read as a JSON list of claims.

    Raises:
        InputError: the claims have another format.
    """
    claims = listed(claims)
    if not is_list_of(claims, dict):
        raise InputError(problem_of(claims) or "")
    read = []
    for number, claim in enumerate(claims, start=1):
        try:
            evidence = _evidence_of(claim)
        except InputError as error:
            raise InputError(f"claim {number}: {error}") from None
        own = {**claim, "evidence": evidence}
        if "label" in claim:
            own["label"] = label_of(claim["label"])
        read.append(own)
    if problem := problem_of(read):
        raise InputError(problem)
    return read


def without_unreadable_labels(claims: Any) -> tuple[Any, str | None]:
    """Return the claims with unreadable labels removed, and a sentence about these labels, or None.

    A label that is neither "Y" nor "N" must not make the whole answer unusable, so its claim counts
    as unlabeled.
    """
    claims = listed(claims)
    if not is_list_of(claims, dict):
        return claims, None
    readable = []
    unreadable: dict[str, None] = {}
    for claim in claims:
        label = claim.get("label")
        if label_of(label) in ("Y", "N", None):
            readable.append(claim)
        else:
            readable.append({**claim, "label": None})
            unreadable[f"{label!r:.40}"] = None
    if not unreadable:
        return readable, None
    problem = f"a claim has the label {' or '.join(unreadable)}, which counts as no label; allowed: {LABELS}"
    return readable, problem


def _evidence_of(claim: Json) -> list[str]:
    evidence: Any = claim.get("evidence")
    has_other_names = any(claim.get(name) for name in EVIDENCE_FIELDS)
    if isinstance(evidence, list) or not has_other_names:
        texts = evidence or []
        if is_list_of(texts, str):
            return texts
    return sources_of({**claim, "attribution": None}).texts


def annotated_items(questions: Questions) -> list[Item]:
    """Return the annotated claims of a config as lines of a file of claims.

    Raises:
        InputError: the config has no annotated claims.
    """
    rows = [question.row for question in questions.rows]
    if not any(is_judged(annotated_claims(row)) for row in rows):
        raise InputError(
            f"the config {questions.config} has no annotated claims: use a FILE with claims, or --config random"
        )
    items = []
    for row in rows:
        # A row of the annotated configs has the answer of exactly one system.
        for answer in row["answers"][:1]:
            items.append(
                {
                    "id": row["id"],
                    "answer": answer["answer_string"],
                    "system": answer["system"],
                    "field": row["field"],
                    "claims": _annotated(answer),
                }
            )
    return items


def _annotated(answer: Row) -> list[Json]:
    claims: list[Json] = []
    for annotated in answer["claims"] or ():
        claim: Json = {
            "claim": annotated["claim_string"],
            "evidence": annotated["evidence"] or [],
        }
        for name in ("atomic_claims", "atomic_evidences"):
            if annotated.get(name) is not None:
                claim[name] = annotated[name]
        claims.append(claim)
    return claims


def problem_of(claims: Any) -> str | None:
    """Return what is wrong with the claims of a line, or None."""
    if not is_list_of(claims, dict):
        return f"claims is {claims!r:.40}; allowed: a list of objects with claim, evidence, label"
    for number, claim in enumerate(claims, start=1):
        evidence = claim.get("evidence")
        allowed = {
            "claim": (isinstance(claim.get("claim"), str), "a string"),
            "evidence": (evidence is None or is_list_of(evidence, str), "a list of strings"),
            "label": (label_of(claim.get("label")) in ("Y", "N", None), LABELS),
        }
        for name in ("fact_score", "fact_score_readable"):
            score = claim.get(name)
            # The type is compared because bool is a subclass of int.
            is_fraction = type(score) in (int, float) and 0 <= score <= 1
            allowed[name] = (score is None or is_fraction, "a number from 0 to 1, or null")
        for name, (is_valid, what) in allowed.items():
            if not is_valid:
                return f"claim {number}: its {name} is {claim.get(name)!r:.40}; allowed: {what}"
    return None


def write_items(path: Path, items: Sequence[Item]) -> None:
    """Write lines as JSONL."""
    lines = [json.dumps(item, ensure_ascii=False) + "\n" for item in items]
    write_text(path, "".join(lines))


def claimed_items(rows: Sequence[Any]) -> list[Item]:
    """Return rows {"answer" or "claims", "evidence"} of any system as lines of a file of claims.

    Claims are strings, or {"claim", "evidence", "label"} if they have individual evidence and
    labels. An answer is split into claims. If its citation marks refer to the evidence, each claim
    gets the pieces that it cites. Otherwise, each claim gets all evidence of the row. The module
    ``fields`` has other names of these fields.

    Raises:
        InputError: a row has another format.
    """
    items: list[Item] = []
    for number, row in enumerate(rows):
        try:
            items.append({"claims": _claims_of_row(row)})
        except InputError as error:
            raise InputError(f"predictions[{number}]{error}") from None
    return items


def _claims_of_row(row: Any) -> list[Json]:
    allowed = "allowed: answer, a string, or claims, a list, and evidence, a list of strings"
    if not isinstance(row, Mapping):
        raise InputError(f" is {row!r:.80}; {allowed}")
    answer: Any = answer_of(row)[0]
    claims: Any = row.get("claims")
    if not (is_list_of(claims, object) or isinstance(answer, str)):
        raise InputError(f" is {row!r:.80}; {allowed}")
    try:
        evidence = sources_of(row).texts
    except InputError as error:
        raise InputError(f" is {row!r:.80}; {allowed} ({error})") from None
    if not is_list_of(claims, object):
        claims = split_claims(answer, evidence).claims
        # Without marks, it is unknown which evidence belongs to which claim.
        if not cited(answer, evidence):
            claims = [claim["claim"] for claim in claims]
    with_evidence = []
    for claim in claims:
        if not isinstance(claim, dict):
            with_evidence.append({"evidence": evidence, "claim": claim})
        elif any(name in claim for name in EVIDENCE_FIELDS):
            with_evidence.append(claim)
        else:
            with_evidence.append({"evidence": evidence, **claim})
    try:
        return read_claims(with_evidence)
    except InputError as error:
        raise InputError(f": {error}") from None
