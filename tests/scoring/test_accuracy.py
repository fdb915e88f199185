"""All branches of the accuracy by hand; the parity tests compare it with the official code."""

from collections.abc import Iterable
from typing import Any

import pytest

from qabench.answers import UNANSWERED
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.errors import InputError


def lower(texts: Iterable[Any]) -> dict[str, str]:
    return {str(text): str(text).lower() for text in texts}


@pytest.mark.parametrize(
    ("reference", "prediction", "loose", "strict"),
    [
        ("Paris", "it is paris, of course", 1, True),
        ("Paris", "parisian", 0, False),
        ("Paris", "parisians in paris", 1, True),  # the whole string comes after a part of a word
        (1.14, "1.14 and 11.4", 1, True),
        (True, "Yes.", 1, True),
        (False, "nobody knows", 0, False),
        ({"France": "Paris", "Peru": "Lima"}, "France Paris Peru", 0.75, False),
        ({"k": ["a", "b", "c"]}, "k", -0.5, False),  # three missing of two: below zero, as upstream
        ("None", None, 1, True),  # null is the string "None" upstream
        ("x", UNANSWERED, 0, False),
    ],
)
def test_one_question(reference: Any, prediction: Any, loose: float, strict: bool) -> None:
    (score,) = accuracy([reference], [prediction], lower).per_question
    assert (score.loose, score.strict) == (loose, strict)


def test_means_and_missing_strings() -> None:
    score = accuracy([["a", "b"], "c"], ["b", UNANSWERED], lower)
    assert (score.loose, score.strict) == (0.25, 0.0)
    assert [question.missing for question in score.per_question] == [("a",), ("c",)]


@pytest.mark.parametrize(
    ("references", "predictions", "message"),
    [
        (["a", {}], ["a", "b"], "reference 1 is or contains an empty list or dict"),
        ([{"a": []}], ["a"], "reference 0 is or contains an empty list or dict"),
    ],
)
def test_what_is_undefined_is_an_error(references: list[Any], predictions: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        accuracy(references, predictions, lower)
