"""ExpertQA's annotated rows: AutoAIS, and the agreement of a model's verdicts on claims with the experts'.

The scores equal the scores of scikit-learn, which the official scripts use. A test compares them.
Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852).
``compute_autoais_score.py`` and ``compute_human_correlation.py`` below
``modeling/auto_attribution`` of its repository.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.answers import UNANSWERED, check_pairs
from qabench.data.rows import Json, SourceRow, grouped
from qabench.errors import DataError, InputError, unknown_name
from qabench.loading_scripts.expertqa.parse import parse_field

FIELDS = ("evidence", "support", "worthiness")  # the fields of a claim that AutoAIS uses
ON_UNLABELED = ("N", "exclude")
# An answer that contains one of these abstains. Case-sensitive substrings, as in the official
# scripts.
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


def abstains(answer: str) -> bool:
    """Tell whether an answer abstains: it contains one of ``ABSTENTIONS``."""
    return any(phrase in answer for phrase in ABSTENTIONS)


def read_answers(
    references: Sequence[Any], predictions: Sequence[Any], verdict: str, fields: Sequence[str]
) -> list[list[Answer]]:
    """Return the answers of the dataset's rows, each claim with the model's verdict on it.

    A prediction is a row whose claims have the field ``verdict``, a flat list of verdicts over the
    claims of the row's answers, or None if there are none. ``fields`` are the required fields of a
    claim in the references. Raises InputError for anything in another format. The message names its
    position.
    """
    check_pairs(references, predictions)
    try:
        rows = [
            _read_row(SourceRow.of(row, f"references[{i}]"), prediction, verdict, fields)
            for i, (row, prediction) in enumerate(zip(references, predictions, strict=True))
        ]
    except DataError as error:
        raise InputError(
            f"{error}; references are rows of the dataset, as load_dataset returns them"
        ) from None
    all_claims = [claim for row in rows for answer in row for claim in answer.claims]
    if all_claims and all(claim.verdict is None for claim in all_claims):
        raise InputError(
            f"no claim has a verdict: claims of predictions need the field {verdict}, as in the configs that have it"
        )
    return rows


def _read_row(row: SourceRow, prediction: Any, name: str, fields: Sequence[str]) -> list[Answer]:
    where = f"the prediction for {row.where}"
    answers = [(answer, _claims(answer)) for answer in row.rows("answers")]
    n_claims = sum(len(claims) for _, claims in answers)
    values = prediction
    if prediction is None or prediction is UNANSWERED:
        values = [None] * n_claims
    elif isinstance(prediction, dict):
        judged = [
            claim for answer in SourceRow(prediction, where).rows("answers") for claim in _claims(answer)
        ]
        asked = [claim for _, claims in answers for claim in claims]
        values = [claim.fields.get(name) for claim in _in_order(judged, asked)]
    if not isinstance(values, list | tuple) or len(values) != n_claims:
        raise InputError(
            f"{where} is {values!r:.80}; allowed: a row of the dataset, a list of {n_claims} verdicts, or None"
        )
    verdicts = (parse_field(SourceRow({name: value}, where), name) for value in values)
    return [
        Answer(
            answer.get("system", str),
            abstains(answer.get("answer_string", str)),
            tuple(
                Claim({field: parse_field(claim, field) for field in fields}, next(verdicts))
                for claim in claims
            ),
        )
        for answer, claims in answers
    ]


def _in_order(judged: list[SourceRow], asked: list[SourceRow]) -> list[SourceRow]:
    """Return the claims of a prediction in the order of the references, if both have the same texts, each once."""
    texts = [str(claim.fields.get("claim_string")) for claim in asked]
    by_text = {str(claim.fields.get("claim_string")): claim for claim in judged}
    if len(texts) != len(judged) or len(set(texts)) != len(texts) or set(texts) != set(by_text):
        return judged
    return [by_text[text] for text in texts]


def _claims(answer: SourceRow) -> list[SourceRow]:
    return list(answer.rows("claims")) if answer.get("claims", list, None) else []


def scored_part(references: Sequence[Any], fields: Sequence[str]) -> list[Any]:
    """Return the parts of rows that a score depends on, for digests: the same with and without verdicts."""
    return [
        [
            [
                answer["system"],
                answer["answer_string"],
                [[claim[name] for name in fields] for claim in answer["claims"] or ()],
            ]
            for answer in row["answers"]
        ]
        for row in references
    ]


@dataclass(frozen=True, slots=True)
class SystemScores:
    """The scored answers or claims of each row, and the function that computes the scores of some of them."""

    per_question: Sequence[Sequence[Any]]
    summary: Callable[[Sequence[Any]], Json]

    def as_dict(self, per_question: bool = False) -> Json:
        """Return the scores of all rows, and in ``by_system`` the scores of each system in first-seen order.

        With ``per_question``, also the answers or claims of each row.
        """
        items = [item for row in self.per_question for item in row]
        systems = grouped((item.system, item) for item in items)
        result = self.summary(items)
        result["by_system"] = {system: self.summary(own) for system, own in systems.items()}
        if per_question:
            result["per_question"] = [[item.as_dict() for item in row] for row in self.per_question]
        return result


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of a system with the verdicts of the model and of the experts, or why it is skipped: not counted.

    A claim that is ``unlabeled``, whose label by the model is missing, can still be counted.
    """

    system: str
    predicted: bool | None = None
    gold: bool | None = None
    skipped: str | None = None
    unlabeled: bool = False

    def as_dict(self) -> Json:
        """Return predicted, gold and skipped."""
        return {"predicted": self.predicted, "gold": self.gold, "skipped": self.skipped}


def agreement_counts(claims: Iterable[JudgedClaim]) -> dict[str, int]:
    """Count claims that are not skipped: tp and tn if model and experts agree on yes or no, fp and fn if not."""
    count = Counter((claim.predicted, claim.gold) for claim in claims if claim.skipped is None)
    return {
        "tp": count[True, True],
        "tn": count[False, False],
        "fp": count[True, False],
        "fn": count[False, True],
    }


def agreement_scores(claims: Sequence[JudgedClaim], positive: str) -> Json:
    """Return accuracy, the scores of the class ``positive`` and of the other one, and counts of claims.

    ``skipped`` has the number of claims that are not counted, by reason.
    """
    tp, tn, fp, fn = agreement_counts(claims).values()
    return {
        "claims": tp + tn + fp + fn,
        "skipped": dict(Counter(claim.skipped for claim in claims if claim.skipped is not None)),
        "accuracy": _ratio(tp + tn, tp + tn + fp + fn),
        positive: _of_class(tp, fp, fn),
        f"not_{positive}": _of_class(tn, fn, fp),
    }


def _of_class(tp: int, fp: int, fn: int) -> Json:
    """Return precision, recall, f1 and support (the number of claims) of a class, or None if undefined."""
    precision, recall = _ratio(tp, tp + fp), _ratio(tp, tp + fn)
    return {
        "precision": precision,
        "recall": recall,
        "f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "support": tp + fn,
    }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def autoais_agreement(
    references: Sequence[Any], predictions: Sequence[Any], *, on_unlabeled: str = "N"
) -> SystemScores:
    """Compare AutoAIS labels with the experts: Y against support Complete, on claims whose worthiness is not No.

    The official script prints accuracy, and precision, recall and F1 of both classes. A claim with
    neither evidence nor label counts as N, as in the official labels. See
    ``autoais`` for the arguments.
    """
    rows = _labeled(references, predictions, on_unlabeled)
    judged = [[claim for answer in row for claim in judged_labels(answer, on_unlabeled)] for row in rows]
    return SystemScores(judged, _agreement)


def judged_labels(answer: Answer, on_unlabeled: str) -> list[JudgedClaim]:
    """Return the labels of an answer's claims next to the verdicts of the experts."""
    return [_judged(answer.system, claim, on_unlabeled) for claim in answer.claims]


def _judged(system: str, claim: Claim, on_unlabeled: str) -> JudgedClaim:
    if claim.fields["worthiness"] == "No":
        return JudgedClaim(system, skipped="not worth a citation")
    unlabeled = claim.verdict is None and bool(claim.fields["evidence"])
    if unlabeled and on_unlabeled == "exclude":
        return JudgedClaim(system, skipped="unlabeled", unlabeled=True)
    return JudgedClaim(
        system, claim.verdict == "Y", claim.fields["support"] == "Complete", unlabeled=unlabeled
    )


def _agreement(claims: Sequence[JudgedClaim]) -> Json:
    unlabeled = sum(claim.unlabeled for claim in claims)
    return agreement_scores(claims, "complete") | agreement_counts(claims) | {"unlabeled": unlabeled}


@dataclass(frozen=True, slots=True)
class AnswerAutoAIS:
    """The score of one answer: for each counted claim 1 if its label is Y, else 0, and numbers of claims.

    Claims without evidence are never counted. ``unlabeled`` ones would count, but have no label.
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
        return _mean(self.values)

    def as_dict(self) -> Json:
        """Return autoais, counted_claims, system and abstains."""
        scores = {"autoais": self.mean, "counted_claims": len(self.values)}
        return {"system": self.system, **scores, "abstains": self.abstains}


def autoais(
    references: Sequence[Any], predictions: Sequence[Any], *, on_unlabeled: str = "N"
) -> SystemScores:
    """Compute AutoAIS: the share of the claims that the experts found fully supported that a model labels Y.

    See ``read_answers`` for references and predictions (labels "Y" and "N"). With ``on_unlabeled``
    "N", a claim without a label counts as N, as upstream. With "exclude", it does not count.
    """
    rows = _labeled(references, predictions, on_unlabeled)
    return SystemScores(
        [[score_answer(answer, on_unlabeled) for answer in row] for row in rows], _autoais
    )


def _autoais(answers: Sequence[AnswerAutoAIS]) -> Json:
    """Return the scores of answers, as the official script prints them: fractions, or None if no claim counts.

    ``macro`` is the mean over answers with counted claims of their share of claims with the label
    Y, ``micro`` that share of all counted claims.
    """
    answering = [answer for answer in answers if not answer.abstains]
    return {
        **_means(answers),
        **{f"{name}_without_abstentions": mean for name, mean in _means(answering).items()},
        "answers": len(answers),
        "abstaining_answers": len(answers) - len(answering),
        "claims": sum(answer.claims for answer in answers),
        "claims_without_evidence": sum(answer.claims_without_evidence for answer in answers),
        "counted_claims": sum(len(answer.values) for answer in answers),
        "unlabeled": sum(answer.unlabeled for answer in answers),
    }


def score_answer(answer: Answer, on_unlabeled: str = "N") -> AnswerAutoAIS:
    """Score one answer.

    A claim counts if it has evidence, its support is Complete and its worthiness is Yes. For the
    system gpt4, claims with "http" in their evidence are not counted, as in the official script
    (whose comment says the opposite).
    """
    with_evidence = [claim for claim in answer.claims if claim.fields["evidence"]]
    counted = [claim for claim in with_evidence if _counts(claim, answer.system)]
    labeled = [claim for claim in counted if claim.verdict is not None]
    scored = labeled if on_unlabeled == "exclude" else counted
    return AnswerAutoAIS(
        answer.system,
        answer.abstains,
        tuple(int(claim.verdict == "Y") for claim in scored),
        len(answer.claims),
        len(answer.claims) - len(with_evidence),
        len(counted) - len(labeled),
    )


def _labeled(
    references: Sequence[Any], predictions: Sequence[Any], on_unlabeled: object
) -> list[list[Answer]]:
    if on_unlabeled not in ON_UNLABELED:
        raise unknown_name("unknown on_unlabeled", on_unlabeled, ON_UNLABELED)
    return read_answers(references, predictions, "autoais_label", FIELDS)


def _counts(claim: Claim, system: str) -> bool:
    if system == "gpt4" and any("http" in text for text in claim.fields["evidence"]):
        return False
    return bool(claim.fields["support"] == "Complete" and claim.fields["worthiness"] == "Yes")


def _means(answers: Sequence[AnswerAutoAIS]) -> dict[str, float | None]:
    return {
        "macro": _mean([answer.mean for answer in answers if answer.mean is not None]),
        "micro": _mean([value for answer in answers for value in answer.values]),
    }


def _mean(values: Sequence[float]) -> float | None:
    # NumPy's mean, as in the official script: the last digit depends on the order of additions.
    return float(np.mean(values)) if values else None
