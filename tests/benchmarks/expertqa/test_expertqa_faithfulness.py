"""Faithfulness of answers to references, and its correlation with the experts' judgments."""

from __future__ import annotations

import numpy as np
import pytest

from qabench.benchmarks.expertqa.claims_comparison import annotated_answers, compared
from qabench.benchmarks.expertqa.faithfulness import annotated_to_check, claims_to_check, scored, table, validation
from qabench.benchmarks.expertqa.items import split_predictions
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.predictions import Prediction, Predictions


def item(name: str, labels: str, judgments: str = "") -> dict[str, object]:
    """Claims with labels Y or N, and judgments c (correct), i (incorrect), - (none)."""
    words = {"c": "Probably correct", "i": "Definitely incorrect", "-": None}
    pairs = zip(labels, judgments or "-" * len(labels), strict=True)
    return {"id": name, "claims": [{"label": label, "correctness": words[judged]} for label, judged in pairs]}


def test_shares_of_entailed_claims() -> None:
    found = scored([item("a", "YYN"), item("b", "N"), item("c", "")])
    assert found.macro.mean == pytest.approx(2 / 9) and found.micro is not None
    assert (found.micro.mean, found.answers, found.claims) == (0.5, 3, 4)
    assert scored([item("a", "")]).micro is None


def test_the_correlation_is_numpys() -> None:
    items = [item("a", "YYNN", "ccic"), item("b", "NYY", "i-c"), item("c", "YN", "ii")]
    labels, judged = [1, 1, 0, 0, 0, 1, 1, 0], [1, 1, 0, 1, 0, 1, 0, 0]
    found = validation(items)
    assert found is not None and found.mean == pytest.approx(np.corrcoef(labels, judged)[0, 1])
    assert found.low <= found.mean <= found.high
    assert validation([item("a", "YYY", "cic")]) is None and validation([]) is None
    assert len(table("t", scored(items), found).rows) == 3


def test_claims_meet_the_reference() -> None:
    questions = load_questions("sample")
    references = {question.id: question.reference for question in questions.rows if question.reference}
    given = [Prediction(1, next(iter(references)), {"answer": "It is so [1]. And so."}), Prediction(2, "x", {})]
    (found,) = claims_to_check(Predictions("p", tuple(given)), questions)
    assert [claim["claim"] for claim in found["claims"]] == ["It is so .", "And so."]
    assert {claim["evidence"][0] for claim in found["claims"]} == {references[found["id"]]}
    assert {one["id"] for one in annotated_to_check(questions)} <= set(references)


def test_released_claims_are_compared() -> None:
    questions = load_questions("sample")
    items = list(split_predictions(annotated_answers(questions)))
    rows = compared(questions, items).rows
    assert rows[-1][0] == "all" and rows[-1][1] == len(items)
    assert all(row[5] <= min(row[3], row[4]) for row in rows)
