"""Functions for FanOutQA's metrics: scorer rows, counts, totals, and results of questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from qabench.benchmarks.fanoutqa.judge import NOT_ANSWERED, Judgment
from qabench.benchmarks.fanoutqa.scorer import FanOutQAScorer, official_shape
from qabench.data.answers import dumps
from qabench.data.rows import Json, Row
from qabench.evaluation.scoring import Item, Outcome

NOT_ASKED = Judgment(None, None, None, reason="the judge was not asked")


def row(answer: Any) -> Row:
    """Return a reference answer as the row that the scorer reads."""
    return {"answer": dumps(answer)}


def accuracy_of_question(item: Item, outcome: Outcome) -> Json:
    """Return the scores of a question, and the normalized strings that were not found."""
    return {
        "loose": outcome.scores["acc.loose"],
        "strict": bool(outcome.scores["acc.strict"]),
        "missing": outcome.detail["missing"],
    }


def bleurt_of_question(item: Item, outcome: Outcome) -> float:
    """Return the BLEURT of a question."""
    return outcome.scores["bleurt"]


def evidence_counts(outcomes: Sequence[Outcome]) -> Json:
    """Return the number of questions for which no page was read. They have no precision."""
    without_pages = sum("evidence.precision" not in outcome.scores for outcome in outcomes)
    return {"without_pages": without_pages}


def evidence_of_question(item: Item, outcome: Outcome) -> Json:
    """Return the scores of a question, and the necessary pages that were not read."""
    return {
        "recall": outcome.scores["evidence.recall"],
        "precision": outcome.scores.get("evidence.precision"),
        "missing": outcome.result["missing_pages"],
    }


def judge_totals(
    scorer: FanOutQAScorer, items: Sequence[Item], outcomes: Sequence[Outcome]
) -> Json:
    """Return the judge's counts, verdicts and usage, or why there is no score."""
    judged = scorer.judged
    if judged is None:
        return {}
    return judged.as_dict() | {"deviations": judged.deviations()}


def judgment_of_question(item: Item, outcome: Outcome) -> Json:
    """Return the score and the verdict of a question, and the judge's reply."""
    without_judge = NOT_ANSWERED if item.fields is None else NOT_ASKED
    return asdict(outcome.result.get("judgment", without_judge))


def all_totals(scorer: FanOutQAScorer, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Json:
    """Return the reasons for absent scores, and the judge's counts below the key "judge"."""
    totals: Json = {"absent": {}}
    if scorer.bleurt is None:
        function = "bleurt=..., (references, candidates) -> scores"
        totals["absent"]["bleurt"] = f"no function was given: {function}"
    judged = judge_totals(scorer, items, outcomes)
    if not judged:
        totals["absent"]["gpt"] = "left out: judge=False, or no questions=[...]"
        return totals
    totals["absent"] |= judged.pop("absent", {})
    totals["deviations"] = judged.pop("deviations")
    for name, value in judged.items():
        totals[f"judge.{name}"] = value
    return totals


def scores_of_question(item: Item, outcome: Outcome) -> Json:
    """Return all scores of a question, in the shape of the official result's ``raw``."""
    return {
        "question_id": item.row.get("id", item.row["position"]),
        "acc": outcome.scores["acc.loose"],
        "rouge": official_shape([outcome.scores])["rouge"],
        "bleurt": outcome.scores.get("bleurt"),
        "gpt": outcome.scores.get("gpt"),
    }
