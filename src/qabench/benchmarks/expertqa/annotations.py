"""Reads ExpertQA's rows for scoring: answers, their claims, and a model's verdict on each claim.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and the scripts of its repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.answers import UNANSWERED, check_pairs
from qabench.errors import InputError
from qabench.loading_scripts.expertqa.parse import LABELS

# An answer that contains one of these abstains. Case-sensitive substrings, as in the official scripts.
ABSTENTIONS = (
    "The context does not",
    "I don't know",
    "The context provided does not",
    "The context provided doesn't",
    "The context doesn't",
    "not sure if I understand",
    "I'm sorry, but I can't",
    "The given context does not",
    "I couldn't find any relevant information",
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an answer: its fields as in the dataset, and the model's verdict on it (None if there is none)."""

    fields: Mapping[str, Any]
    verdict: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A system's answer to a question, with its claims."""

    system: str
    abstains: bool
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The field with a model's verdict on a claim, and the values that are allowed in addition to None."""

    field: str
    allowed: str
    is_allowed: Callable[[Any], bool]


def _is_fraction(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


AUTOAIS_LABEL = Verdict(
    "autoais_label", "'Y', 'N'", lambda value: isinstance(value, str) and value in LABELS["autoais_label"]
)
FACT_SCORE = Verdict("fact_score", "a number from 0 to 1", _is_fraction)


def abstains(answer: str) -> bool:
    """Whether an answer abstains: it contains one of ``ABSTENTIONS``."""
    return any(phrase in answer for phrase in ABSTENTIONS)


def read_answers(
    references: Sequence[Any], predictions: Sequence[Any], verdict: Verdict, fields: Sequence[str]
) -> list[list[Answer]]:
    """The answers of the dataset's rows, each claim with the model's verdict on it.

    Args:
        references: rows of the dataset; only ``answers`` is used, with system, answer_string and claims.
        predictions: for each row, the verdicts on its claims: the row with the verdict's field in its claims, a flat
            list over the claims of all its answers, or None if there are none.
        verdict: the kind of verdict.
        fields: the required fields of a claim: those that the score uses.

    Raises:
        InputError: no rows, lists of different lengths, no verdict at all, or a row, answer, claim or verdict in
            another format; the message names its position.
    """
    check_pairs(references, predictions)
    rows = []
    for i, (row, prediction) in enumerate(zip(references, predictions, strict=True)):
        answers = _answers(row, f"references[{i}]")
        verdicts = iter(_verdicts(prediction, answers, verdict, i))
        rows.append(
            [_answer(answer, verdicts, fields, f"references[{i}]['answers'][{j}]") for j, answer in enumerate(answers)]
        )
    claims = [claim for row in rows for answer in row for claim in answer.claims]
    if claims and all(claim.verdict is None for claim in claims):
        raise InputError(
            f"no claim has a verdict: the claims of predictions need the field {verdict.field} ({verdict.allowed}), as "
            "in the configs that have it"
        )
    return rows


def scored_part(references: Sequence[Any], fields: Sequence[str]) -> list[Any]:
    """The parts of rows that a score depends on, for digests: the same with and without verdicts."""
    return [
        [
            [answer["system"], answer["answer_string"], [[claim[name] for name in fields] for claim in claims]]
            for answer in row["answers"]
            for claims in [answer["claims"] or ()]
        ]
        for row in references
    ]


def _answer(answer: Mapping[str, Any], verdicts: Iterator[Any], fields: Sequence[str], where: str) -> Answer:
    claims = [_checked(claim, fields, f"{where}['claims'][{k}]") for k, claim in enumerate(answer["claims"] or ())]
    text = answer["answer_string"]
    return Answer(answer["system"], abstains(text), tuple(Claim(claim, next(verdicts)) for claim in claims))


def _answers(row: Any, where: str) -> list[Mapping[str, Any]]:
    answers = row.get("answers") if isinstance(row, Mapping) else None
    if not isinstance(answers, list):
        raise InputError(
            f"{where} is {row!r:.80}; allowed: a row of the dataset, a dict whose 'answers' is a list (in the source "
            "files it is a dict by system, which load_dataset converts to a list)"
        )
    for j, answer in enumerate(answers):
        texts = answer if isinstance(answer, Mapping) else {}
        claims = texts.get("claims", False)
        if not (
            isinstance(texts.get("system"), str)
            and isinstance(texts.get("answer_string"), str)
            and (claims is None or isinstance(claims, list))
        ):
            raise InputError(
                f"{where}['answers'][{j}] is {answer!r:.80}; allowed: a dict with system, answer_string (strings) and "
                "claims (a list or None)"
            )
    return answers


def _verdicts(prediction: Any, answers: list[Mapping[str, Any]], verdict: Verdict, i: int) -> list[Any]:
    """One verdict for each claim of the row, answer by answer."""
    n_claims = [len(answer["claims"] or ()) for answer in answers]
    where = f"predictions[{i}]"
    if prediction is None or prediction is UNANSWERED:
        return [None] * sum(n_claims)
    if isinstance(prediction, Mapping):
        judged = _answers(prediction, where)
        wanted = [(answer["system"], n) for answer, n in zip(answers, n_claims, strict=True)]
        got = [(answer["system"], len(answer["claims"] or ())) for answer in judged]
        if got != wanted:
            raise InputError(
                f"{where} has systems and numbers of claims {got!r:.80}, but references[{i}] {wanted!r:.80}"
            )
        claims = [claim for answer in judged for claim in answer["claims"] or ()]
        verdicts = [claim.get(verdict.field) if isinstance(claim, Mapping) else claim for claim in claims]
    elif isinstance(prediction, list | tuple):
        verdicts = list(prediction)
    else:
        raise InputError(f"{where} is {prediction!r:.80}; allowed: a row of the dataset, a list of verdicts, or None")
    if len(verdicts) != sum(n_claims):
        raise InputError(f"{where} has {len(verdicts)} verdicts for the {sum(n_claims)} claims of references[{i}]")
    for k, value in enumerate(verdicts):
        if value is not None and not verdict.is_allowed(value):
            raise InputError(f"{where}, claim {k}: {verdict.field} is {value!r:.60}; allowed: {verdict.allowed}, None")
    return verdicts


def _checked(claim: Any, fields: Sequence[str], where: str) -> Mapping[str, Any]:
    if not isinstance(claim, Mapping):
        raise InputError(f"{where} is {claim!r:.80}; allowed: a dict with {', '.join(fields)}")
    for name in fields:
        if name not in claim:
            raise InputError(f"{where} has no {name!r}; use rows as in the dataset")
        value = claim[name]
        if name in LABELS:
            fits, allowed = value is None or value in LABELS[name], f"{', '.join(LABELS[name])}, or None"
        elif name == "evidence":
            fits, allowed = value is None or _is_texts(value), "a list of strings, or None"
        else:
            fits, allowed = isinstance(value, str), "text"
        if not fits:
            raise InputError(f"{where}[{name!r}] is {value!r:.60}; allowed: {allowed}")
    return claim


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
