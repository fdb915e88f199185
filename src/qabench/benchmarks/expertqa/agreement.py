"""Scores of ExpertQA's annotated rows: AutoAIS, and a model's agreement with the experts on claims.

The agreement scores equal those that scikit-learn computes in the official scripts. A test compares
both.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and
``compute_autoais_score.py`` and ``compute_human_correlation.py`` below
``modeling/auto_attribution`` of its repository.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from qabench.data.answers import UNANSWERED, check_pairs
from qabench.data.rows import Json, SourceRow
from qabench.errors import DataError, InputError, unknown_name
from qabench.loading_scripts.expertqa.parse import parse_field

# The fields of a claim that AutoAIS depends on. The digest of references covers them.
FIELDS = ("evidence", "support", "worthiness")
ON_UNLABELED = ("N", "exclude")
# An answer abstains if it contains one of these phrases. As in the official scripts, they are
# case-sensitive substrings.
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
    """A claim of an answer: its fields as in the dataset, and the model's verdict if it has one."""

    fields: Mapping[str, Any]
    verdict: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A system's answer to a question, with its claims."""

    system: str
    abstains: bool
    claims: tuple[Claim, ...]


def check_unlabeled(treatment: object) -> None:
    """Raise InputError for an unknown treatment of claims without a label."""
    if treatment not in ON_UNLABELED:
        raise unknown_name("unknown on_unlabeled", treatment, ON_UNLABELED)


def abstains(answer: str) -> bool:
    """Tell whether an answer abstains: it contains one of ``ABSTENTIONS``."""
    return any(phrase in answer for phrase in ABSTENTIONS)


def read_answers(
    references: Sequence[Any], predictions: Sequence[Any], verdict: str, fields: Sequence[str]
) -> list[list[Answer]]:
    """Return the answers of the dataset's rows, each claim with the model's verdict on it.

    A prediction is one of three things: a row whose claims have the field ``verdict``, a flat list
    of verdicts over the claims of all answers of the row, or None if there are no verdicts.
    ``fields`` are the required fields of a claim in the references.

    Raises:
        InputError: a reference or a prediction has another format. The message names its position.
    """
    check_pairs(references, predictions)
    rows = []
    try:
        for i, (reference, prediction) in enumerate(zip(references, predictions, strict=True)):
            row = SourceRow.of(reference, f"references[{i}]")
            rows.append(_read_row(row, prediction, verdict, fields))
    except DataError as error:
        raise InputError(
            f"{error}; references are rows of the dataset, as load_dataset returns them, and predictions are such "
            f"rows with the field {verdict}, or a list of verdicts for each row"
        ) from None
    verdicts = []
    for answer in chain.from_iterable(rows):
        verdicts += [claim.verdict for claim in answer.claims]
    # Without this check, verdicts in the wrong column would be missing, and count as N.
    if verdicts and all(value is None for value in verdicts):
        raise InputError(
            f"no claim has a verdict: claims of predictions need the field {verdict}, as in the configs that have it"
        )
    return rows


def _read_row(row: SourceRow, prediction: Any, name: str, fields: Sequence[str]) -> list[Answer]:
    where = f"the prediction for {row.where}"
    answers = []
    asked: list[SourceRow] = []
    for answer in row.rows("answers"):
        claims = _claims(answer)
        answers.append((answer, claims))
        asked += claims
    values = prediction
    if prediction is None or prediction is UNANSWERED:
        values = [None] * len(asked)
    elif isinstance(prediction, dict):
        judged: list[SourceRow] = []
        for judged_answer in SourceRow(prediction, where).rows("answers"):
            judged += _claims(judged_answer)
        values = [claim.fields.get(name) for claim in _in_order(judged, asked, where)]
    if not isinstance(values, list | tuple) or len(values) != len(asked):
        raise InputError(
            f"{where} is {values!r:.80}; allowed: a row of the dataset, a list of {len(asked)} verdicts, or None"
        )

    # ``values`` is a flat list over the claims of all answers of the row.
    verdicts = iter(values)
    read = []
    for answer, claims in answers:
        system = answer.get("system", str)
        is_abstention = abstains(answer.get("answer_string", str))
        read_claims = []
        for claim in claims:
            claim_fields = {field: parse_field(claim, field) for field in fields}
            verdict = parse_field(SourceRow({name: next(verdicts)}, where), name)
            read_claims.append(Claim(claim_fields, verdict))
        read.append(Answer(system, is_abstention, tuple(read_claims)))
    return read


def _in_order(judged: list[SourceRow], asked: list[SourceRow], where: str) -> list[SourceRow]:
    """Return the claims of a prediction in the order of the references.

    The order is changed only if both sides have the same texts and no text is repeated: a verdict
    on a repeated text could belong to any of the claims with this text. Claims without a text on
    one side are matched by their position, like a list of verdicts.

    Raises:
        InputError: a claim has a different text from the reference's claim at the same position.
            Its verdict may be about anything, such as a claim of another answer.
    """
    texts = list(map(_text_of, asked))
    judged_texts = list(map(_text_of, judged))
    if len(texts) != len(judged_texts):
        return judged
    is_unique = len(set(texts)) == len(texts)
    if is_unique and set(texts) == set(judged_texts):
        by_text = dict(zip(judged_texts, judged, strict=True))
        return [by_text[text] for text in texts]
    for number, (text, judged_text) in enumerate(zip(texts, judged_texts, strict=True), start=1):
        if text is None or judged_text is None or text == judged_text:
            continue
        raise InputError(
            f"{where} has other claims than the reference, or has them in another order: claim {number} is "
            f"{judged_text!r:.80}, and in the reference {text!r:.80}; pass the claims of the reference, in their "
            f"order, or a list of {len(texts)} verdicts on them"
        )
    return judged


def _text_of(claim: SourceRow) -> str | None:
    text = claim.fields.get("claim_string")
    if text is None:
        return None
    return claim_text(str(text))


def claim_text(text: str) -> str:
    """Return the text of a claim, for comparison with the text of another claim."""
    # One claim in ten begins or ends with whitespace, which other tools may strip.
    return text.strip()


def _claims(answer: SourceRow) -> list[SourceRow]:
    if not answer.get("claims", list, None):
        return []
    return list(answer.rows("claims"))


def scored_part(references: Sequence[Any], fields: Sequence[str]) -> list[Any]:
    """Return the parts of reference rows that a score depends on, for the digest in signatures."""
    rows = []
    for row in references:
        answers = []
        for answer in row["answers"]:
            claims = []
            for claim in answer["claims"] or ():
                claims.append([claim[name] for name in fields])
            answers.append([answer["system"], answer["answer_string"], claims])
        rows.append(answers)
    return rows


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of a system with the verdicts of the model and of the experts.

    Attributes:
        system: the system that wrote the claim.
        predicted: the model's verdict.
        gold: the experts' verdict.
        skipped: why the claim does not count, or None if it counts.
        unlabeled: whether the model's label is missing. Such a claim can still count.
    """

    system: str
    predicted: bool | None = None
    gold: bool | None = None
    skipped: str | None = None
    unlabeled: bool = False

    def as_dict(self) -> Json:
        """Return the fields predicted, gold and skipped."""
        return {"predicted": self.predicted, "gold": self.gold, "skipped": self.skipped}


def agreement_columns(group: str, claims: Iterable[JudgedClaim]) -> dict[str, int]:
    """Count the claims that are not skipped, as columns of a group of scores.

    Args:
        group: the group of scores.
        claims: the claims. Model and experts agree on tp (both say yes) and tn (both say no), and
            disagree on fp (only the model says yes) and fn.
    """
    counts: Counter[tuple[bool | None, bool | None]] = Counter()
    for claim in claims:
        if claim.skipped is None:
            counts[claim.predicted, claim.gold] += 1
    return {
        f"{group}.tp": counts[True, True],
        f"{group}.tn": counts[False, False],
        f"{group}.fp": counts[True, False],
        f"{group}.fn": counts[False, True],
    }


def judged_labels(answer: Answer, on_unlabeled: str) -> list[JudgedClaim]:
    """Return the labels of an answer's claims next to the verdicts of the experts.

    A label Y is compared with support Complete, on claims whose worthiness is not No. A claim with
    neither evidence nor label counts as N, as in the official labels. A claim with evidence but
    without a label counts as N, or does not count if ``on_unlabeled`` is "exclude".
    """
    return [_judged(answer.system, claim, on_unlabeled) for claim in answer.claims]


def _judged(system: str, claim: Claim, on_unlabeled: str) -> JudgedClaim:
    # As in the official script, the few claims whose worthiness nobody judged count.
    if claim.fields["worthiness"] == "No":
        return JudgedClaim(system, skipped="not worth a citation")
    # Without evidence, the authors' labeler says N without asking its model.
    unlabeled = claim.verdict is None and bool(claim.fields["evidence"])
    if unlabeled and on_unlabeled == "exclude":
        return JudgedClaim(system, skipped="unlabeled", unlabeled=True)
    # Partial support counts as no support, as in the official script.
    is_supported = claim.fields["support"] == "Complete"
    return JudgedClaim(system, claim.verdict == "Y", is_supported, unlabeled=unlabeled)


@dataclass(frozen=True, slots=True)
class AnswerAutoAIS:
    """The score of one answer.

    Attributes:
        system: the system that wrote the answer.
        abstains: whether the answer abstains.
        values: for each counted claim, 1 if its label is Y, else 0.
        claims: the number of all claims of the answer.
        claims_without_evidence: the number of claims without evidence, which never count.
        unlabeled: the number of claims that have no label, but all other properties of a counted
            claim.
    """

    system: str
    abstains: bool
    values: tuple[int, ...]
    claims: int
    claims_without_evidence: int
    unlabeled: int

    @property
    def mean(self) -> float | None:
        """Return the share of counted claims with the label Y, or None if no claim counts."""
        if not self.values:
            return None
        return sum(self.values) / len(self.values)

    def columns(self) -> dict[str, float]:
        """Return the columns of the scores that are computed from labels."""
        columns: dict[str, float] = {
            "claims_counted": len(self.values),
            "claims_supported": sum(self.values),
        }
        if self.mean is not None:
            columns["autoais_macro"] = self.mean
        if self.abstains:
            return columns
        # Abstaining answers do not get the following columns, so they are not in those means.
        for name, value in list(columns.items()):
            columns[f"{name}_without_abstentions"] = value
        return columns

    def as_dict(self) -> Json:
        """Return the fields autoais, counted_claims, system and abstains."""
        scores = {"autoais": self.mean, "counted_claims": len(self.values)}
        return {"system": self.system, **scores, "abstains": self.abstains}


def score_answer(answer: Answer, on_unlabeled: str = "N") -> AnswerAutoAIS:
    """Score one answer.

    A claim counts if it has evidence, its support is Complete and its worthiness is Yes. For the
    system gpt4, claims with "http" in their evidence are not counted. The official script does the
    same (although its comment says the opposite). If ``on_unlabeled`` is "N", a claim without a
    label counts as N, as in the official script. If it is "exclude", such a claim does not count.
    """
    values = []
    n_without_evidence = 0
    n_unlabeled = 0
    for claim in answer.claims:
        if not claim.fields["evidence"]:
            n_without_evidence += 1
            continue
        if not _counts(claim, answer.system):
            continue
        if claim.verdict is None:
            n_unlabeled += 1
            if on_unlabeled == "exclude":
                continue
        values.append(int(claim.verdict == "Y"))
    return AnswerAutoAIS(
        answer.system,
        answer.abstains,
        tuple(values),
        len(answer.claims),
        n_without_evidence,
        n_unlabeled,
    )


def _counts(claim: Claim, system: str) -> bool:
    # GPT-4 cites addresses from memory, and the official script does not count such claims.
    if system == "gpt4" and any("http" in text for text in claim.fields["evidence"]):
        return False
    return bool(claim.fields["support"] == "Complete" and claim.fields["worthiness"] == "Yes")
