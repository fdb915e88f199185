"""Faithfulness of answers to reference answers: the share of an answer's claims that the reference answer entails.

This project's own score, in place of QAFactEval, which the authors used for long-form answers: its package needs
torch 1.6, which cannot be installed any more. The model is the one of AutoAIS; see ``qabench.neural.nli``.

It is validated on ExpertQA's own labels: experts judged the correctness of each claim of the annotated answers, and
revised the answers. A claim that the revised answer entails should be correct. The revised answer was made from the
answer, so that claims which the expert left as they were are entailed by a copy of themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.benchmarks.expertqa.claims import split_claims, without_marks
from qabench.benchmarks.expertqa.items import Item
from qabench.benchmarks.expertqa.questions import Questions
from qabench.predictions import Predictions
from qabench.scoring.factscore import CORRECT
from qabench.stats import Interval, bootstrap
from qabench.tables import Table

MINIMUM = 3  # claims: of fewer, no correlation is computed


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """Scores with 95% intervals, from whole answers drawn with replacement.

    Attributes:
        macro: the mean over answers of the share of their claims that are entailed; an answer without claims is 0.
        micro: the share of all claims that are entailed; None without claims.
        answers: the number of answers.
        claims: the number of claims.
    """

    macro: Interval
    micro: Interval | None
    answers: int
    claims: int


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
            split = split_claims(answer, []).claims if isinstance(answer, str) else []
            claims = [_to_check(claim["claim_string"], references[row.id]) for claim in split]
            found.append({"id": row.id, "answer": answer, "claims": claims})
    return found


def annotated_to_check(questions: Questions) -> list[Item]:
    """The annotated claims with the revised answer as their evidence; see ``validation``."""
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
    counts = [(sum(claim["label"] == "Y" for claim in item["claims"]), len(item["claims"])) for item in items]
    shares = [[yes / n if n else 0.0, 1.0] for yes, n in counts]
    n_claims = sum(n for _, n in counts)
    micro = bootstrap(np.array(counts, dtype=float), _ratio) if n_claims else None
    return Faithfulness(bootstrap(np.array(shares), _ratio), micro, len(items), n_claims)


def validation(items: Sequence[Item]) -> Interval | None:
    """Pearson's correlation (phi) over claims between the label Y and the experts' judgment that a claim is correct.

    Correct is Definitely or Probably correct, as in the agreement of fact scores; claims without a judgment are left
    out. The interval draws whole answers. None if there are too few claims, or all have the same label or judgment.

    Args:
        items: labeled, from ``annotated_to_check``.
    """
    rows, clusters = [], []
    for item in items:
        for claim in item["claims"]:
            if claim["correctness"] is not None:
                x, y = float(claim["label"] == "Y"), float(claim["correctness"] in CORRECT)
                rows.append([1.0, x, y, x * x, y * y, x * y])
                clusters.append(item["id"])
    if len(rows) < MINIMUM or not np.ptp(np.array(rows)[:, 1:3], axis=0).all():
        return None
    return bootstrap(np.array(rows), _pearson, clusters=clusters)


def table(title: str, score: Faithfulness, correlation: Interval | None, judged: int = 0) -> Table:
    """The scores, and the correlation over the judged claims if there is one."""
    named: Mapping[str, tuple[Interval | None, int, str]] = {
        "faithfulness (mean over answers)": (score.macro, score.answers, "answers"),
        "faithfulness (over all claims)": (score.micro, score.claims, "claims"),
        "correlation with the experts' correctness": (correlation, judged, "claims"),
    }
    rows: list[list[Any]] = [
        [name, *(f"{value:.4f}" for value in (one.mean, one.low, one.high)), n, unit]
        for name, (one, n, unit) in named.items()
        if one is not None
    ]
    return Table(title, ["", "score", "95% low", "95% high", "n", "of"], rows)


def _to_check(claim: str, reference: str | None) -> dict[str, Any]:
    return {"claim": without_marks(claim), "evidence": [reference] if reference else []}


def _ratio(part: Any, whole: Any) -> Any:
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


def _pearson(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """0 where one of the variables is constant, as in some resamples."""
    square = (n * xx - x * x) * (n * yy - y * y)
    return np.where(square > 0, (n * xy - x * y) / np.sqrt(np.maximum(square, 1e-12)), 0.0)
