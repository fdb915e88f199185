"""Faithfulness on ExpertQA: the claims of answers, each with the reference answer as its evidence, and the validation.

The score is in ``faithfulness_scores``; the model is the one of AutoAIS, see ``qabench.models.entailment``.

It is validated on ExpertQA's own labels: experts judged the correctness of each claim of the annotated answers, and
revised the answers. A claim that the revised answer entails should be correct. Most claims are still in the revised
answer word for word, so the validation also shows the correlation of that alone: a model should exceed it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabench.benchmarks.expertqa.claims import split_claims, without_marks
from qabench.benchmarks.expertqa.faithfulness_scores import Faithfulness, contains, correlation, faithfulness
from qabench.benchmarks.expertqa.items import Item
from qabench.benchmarks.expertqa.questions import Questions
from qabench.data.predictions import Predictions
from qabench.io.tables import Table
from qabench.models.entailment import Entailment, Splitter, label_claims
from qabench.stats import Interval


def claims_of(answer: str | None, reference: str) -> list[dict[str, Any]]:
    """{"claim", "evidence"} for each claim of an answer; the evidence is the reference answer. [] without an answer."""
    split = split_claims(answer, []).claims if answer else []
    return [_to_check(claim["claim_string"], reference) for claim in split]


def labels_of(
    answers: Sequence[str | None], references: Sequence[str], model: Entailment, split: Splitter | None = None
) -> list[list[dict[str, Any]]]:
    """{"claim", "label"} for each claim of each answer, in order.

    Args:
        answers: None for an unanswered question, which has no claims.
        references: one reference answer per answer.
        model: the model from ``qabench.models.entailment.load_entailment``.
        split: splits references of more than 512 tokens into sentences; see ``label_claims``.
    """
    claims = [claims_of(answer, reference) for answer, reference in zip(answers, references, strict=True)]
    pairs = [(claim["claim"], claim["evidence"]) for own in claims for claim in own]
    labels = iter(label_claims(pairs, model, split))
    return [[{"claim": claim["claim"], "label": next(labels)} for claim in own] for own in claims]


def claims_to_check(predictions: Predictions, questions: Questions) -> list[Item]:
    """The claims of answers with the reference answer as their evidence; answers without reference are left out.

    Args:
        predictions: lines with "answer".
        questions: with reference answers.
    """
    references = {question.id: question.reference for question in questions.rows if question.reference}
    found = []
    for row in predictions.rows:
        if row.id in references:
            answer = row.fields.get("answer")
            claims = claims_of(answer if isinstance(answer, str) else None, references[row.id])
            found.append({"id": row.id, "answer": answer, "claims": claims})
    return found


def annotated_to_check(questions: Questions) -> list[Item]:
    """The annotated claims with the revised answer as their evidence, and with ``correctness``; see ``validation``."""
    return [
        {
            "id": question.id,
            "answer": question.answers[0]["answer_string"],
            "claims": [
                _to_check(claim["claim_string"], question.reference) | {"correctness": claim["correctness"]}
                for claim in question.answers[0]["claims"] or ()
            ],
        }
        for question in questions.rows
        if question.answers and question.reference
    ]


def scored(items: Sequence[Item]) -> Faithfulness:
    """The scores of labeled items.

    Raises:
        InputError: there are no items.
    """
    return faithfulness([[claim["label"] for claim in item["claims"]] for item in items])


def validation(items: Sequence[Item]) -> dict[str, Interval | None]:
    """The correlation of labels with the experts' correctness, and that of containment; see ``correlation``.

    Args:
        items: labeled, from ``annotated_to_check``.
    """
    judged = [[claim["correctness"] for claim in item["claims"]] for item in items]
    labels = [[claim["label"] for claim in item["claims"]] for item in items]
    contained = [
        ["Y" if any(contains(text, claim["claim"]) for text in claim["evidence"]) else "N" for claim in item["claims"]]
        for item in items
    ]
    return {
        "correlation of labels with the experts' correctness": correlation(labels, judged),
        "the same, if Y means that the reference contains the claim": correlation(contained, judged),
    }


def table(title: str, score: Faithfulness, correlations: Mapping[str, Interval | None], judged: int = 0) -> Table:
    """The scores, and the correlations over the judged claims if there are any."""
    answers = (score.macro(), len(score.per_answer), "answers")
    named = {
        "faithfulness (mean over answers)": answers,
        "faithfulness (over all claims)": (score.micro(), score.claims, "claims"),
        **{name: (value, judged, "claims") for name, value in correlations.items()},
    }
    rows: list[list[Any]] = [
        [name, *(f"{value:.4f}" for value in (one.mean, one.low, one.high)), n, unit]
        for name, (one, n, unit) in named.items()
        if one is not None
    ]
    return Table(title, ["", "score", "95% low", "95% high", "n", "of"], rows)


def _to_check(claim: str, reference: str | None) -> dict[str, Any]:
    return {"claim": without_marks(claim), "evidence": [reference] if reference else []}
