"""Faithfulness of answers to references, and its correlation with the experts' judgments."""

from __future__ import annotations

import numpy as np
import pytest

from qabench.benchmarks.expertqa.claims import annotated_to_check, claims_to_check
from qabench.benchmarks.expertqa.evaluate import load_questions
from qabench.benchmarks.expertqa.lfqa import contains, correlation, faithfulness
from qabench.data.predictions import Prediction, Predictions
from qabench.errors import InputError

JUDGMENTS = {"c": "Probably correct", "i": "Definitely incorrect", "-": None}


def test_shares_of_entailed_claims() -> None:
    found = faithfulness(["YYN", "N", ""])
    assert found.macro.mean == pytest.approx(2 / 9) and found.micro is not None
    assert (found.micro.mean, found.claims, found.answers) == (0.5, 4, 3)
    assert faithfulness([""]).micro is None
    with pytest.raises(InputError, match="no answers"):
        faithfulness([])


def test_the_correlation_is_numpys() -> None:
    judgments = [[JUDGMENTS[one] for one in answer] for answer in ("ccic", "i-c", "ii")]
    labels, judged = [1, 1, 0, 0, 0, 1, 1, 0], [1, 1, 0, 1, 0, 1, 0, 0]
    found = correlation(["YYNN", "NYY", "YN"], judgments)
    assert found is not None and found.mean == pytest.approx(np.corrcoef(labels, judged)[0, 1])
    assert found.low <= found.mean <= found.high
    assert correlation(["YYY"], [judgments[0][:3]]) is None and correlation([], []) is None


def test_contains_whole_words_in_order() -> None:
    assert contains("So: light takes 8 minutes, at most.", "Light takes 8 minutes!")
    assert not contains("lighter takes", "light takes") and not contains("takes light", "light takes")


def test_claims_meet_the_reference() -> None:
    questions = load_questions("sample")
    references = {question.id: question.reference for question in questions.rows if question.reference}
    given = [Prediction(1, next(iter(references)), {"answer": "It is so [1]. And so."}), Prediction(2, "x", {})]
    (found,) = claims_to_check(Predictions("p", tuple(given)), questions)
    assert [claim["claim"] for claim in found["claims"]] == ["It is so .", "And so."]
    assert {claim["evidence"][0] for claim in found["claims"]} == {references[found["id"]]}
    assert {one["id"] for one in annotated_to_check(questions)} <= set(references)
