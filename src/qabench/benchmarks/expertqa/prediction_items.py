"""The content of a line of ExpertQA predictions, checked, with its question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from qabench.benchmarks.expertqa.questions import Question
from qabench.data.predictions import Prediction

Claims = list[dict[str, Any]]
Row = Mapping[str, Any]


@dataclass
class Item:
    """A question, its prediction as far as it could be read, and the columns computed so far."""

    question: Question
    prediction: Prediction | None
    answer: str | None = None
    claims: Claims | None = None
    annotated: bool = False
    wrong: str | None = None
    scores: dict[str, float] = field(default_factory=dict)


def read_item(question: Question, prediction: Prediction | None) -> Item:
    item = Item(question, prediction)
    if prediction is None:
        return item
    fields = prediction.fields
    item.wrong = _wrong(fields)
    if item.wrong is None:
        item.answer = fields.get("answer")
        item.claims = None if fields.get("claims") is None else [_claim(claim) for claim in fields["claims"]]
    return item


def _claim(claim: Row) -> dict[str, Any]:
    names = {"claim_string": "claim", "evidence": "evidence", "label": "label", "fact_score": "fact_score"}
    return {name: claim.get(given) for name, given in names.items()}


def _wrong(fields: Row) -> str | None:
    """What is wrong with the fields of a prediction, or None."""
    answer, claims = fields.get("answer"), fields.get("claims")
    if answer is not None and not isinstance(answer, str):
        return f"the answer is a {type(answer).__name__}; allowed: a string or null"
    if claims is not None and not isinstance(claims, list):
        return f"claims is a {type(claims).__name__}; allowed: a list of objects"
    for number, claim in enumerate(claims or (), start=1):
        if reason := _wrong_claim(claim):
            return f"claim {number}: {reason}"
    return None


def _wrong_claim(claim: Any) -> str | None:
    if not isinstance(claim, Mapping):
        return f"a JSON {type(claim).__name__}; allowed: an object with claim, evidence, label"
    text, evidence, score = claim.get("claim"), claim.get("evidence"), claim.get("fact_score")
    if text is not None and not isinstance(text, str):
        return f"its claim is {text!r:.40}; allowed: a string"
    if evidence is not None and not (isinstance(evidence, list) and all(isinstance(one, str) for one in evidence)):
        return f"its evidence is {evidence!r:.40}; allowed: a list of strings"
    if claim.get("label") not in ("Y", "N", None):
        return f'its label is {claim["label"]!r:.40}; allowed: "Y", "N" or null'
    number = isinstance(score, int | float) and not isinstance(score, bool) and isfinite(score) and 0 <= score <= 1
    if score is not None and not number:
        return f"its fact_score is {score!r:.40}; allowed: a number from 0 to 1, or null"
    return None


def match_annotated(items: Sequence[Item]) -> None:
    """Checks that either all predictions have the annotated claims, or none.

    If some have them, a prediction with other claims is wrong: its labels cannot be assigned to the annotated claims.
    """
    given = [item for item in items if item.claims is not None]
    fitting = [item for item in given if item.claims and _fits(item.claims, item.question)]
    if not fitting:
        return
    for item in given:
        item.annotated = not item.claims or _fits(item.claims, item.question)
        if not item.annotated or (not item.claims and annotated_claims(item.question)):
            item.annotated, item.claims = False, None
            item.wrong = "its claims are not the annotated claims of the question's answer"


def annotated_claims(question: Question) -> Claims:
    return [claim for answer in question.answers for claim in answer["claims"] or ()]


def _fits(claims: Claims, question: Question) -> bool:
    judged = annotated_claims(question)
    if len(judged) != len(claims) or not any(claim["support"] is not None for claim in judged):
        return False
    pairs = zip(claims, judged, strict=True)
    return all(
        ours["claim_string"] is None or ours["claim_string"].strip() == theirs["claim_string"].strip()
        for ours, theirs in pairs
    )


def text_of_item(item: Item) -> str:
    """The text that decides whether an answer abstains: the answer, or its claims if only these are given."""
    return item.answer or " ".join(claim["claim_string"] or "" for claim in item.claims or ())


def labeled_by(items: Sequence[Item], name: str) -> str:
    """The model that made the labels according to a field of the lines; "unstated" without this field."""
    said = [item.prediction.fields.get(name) for item in items if item.prediction is not None]
    return ",".join(dict.fromkeys(str(value) for value in said if value)) or "unstated"
