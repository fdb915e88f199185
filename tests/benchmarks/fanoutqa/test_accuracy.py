"""FanOutQA's accuracy and ROUGE by hand; the parity tests compare them with the official code."""

from collections.abc import Iterable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.data.answers import UNANSWERED
from qabench.errors import InputError
from qabench.text import rouge as module
from qabench.text.rouge import by_type, rouge


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
    (score,) = accuracy([reference], [prediction], lower)
    assert (score.loose, score.strict) == (loose, strict)


def test_missing_strings() -> None:
    scores = accuracy([["a", "b"], "c"], ["b", UNANSWERED], lower)
    assert [(score.loose, score.strict, score.missing) for score in scores] == [(0.5, 0, ("a",)), (0, 0, ("c",))]


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


VOCABULARY = ["the", "cats", "cat", "running", "runs", "flies", "happily", "1,234", "caresses", "generalization", "é"]
WORDS = st.lists(st.sampled_from(VOCABULARY))
TEXT = (
    WORDS.map(" ".join) | st.text(st.characters(exclude_categories=())) | st.text("aeiouyst'- \u0130\u212a\u1e9e\ufb01")
)


@given(TEXT, TEXT)
def test_both_backends_are_equal_to_the_last_bit(reference: str, prediction: str) -> None:
    scores = []
    for name in ("rouge_score", "rouge_score_rs"):
        with mock.patch.object(module, "backend", lambda name=name: name):
            scores.append(rouge([reference], [prediction]))
    assert scores[0] == scores[1]


def test_by_hand() -> None:
    first, second = rouge([["Paris", "Lima"], "x"], ["paris rome", UNANSWERED])
    assert by_type(first)["rouge1"] == {"precision": 0.5, "recall": 0.5, "fscore": 0.5}
    assert set(second.values()) == {0}


def test_the_signature_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert module.backend_version().startswith("rouge-score-0")
    monkeypatch.setattr(module, "find_spec", lambda name: True)
    assert module.backend_version().startswith("rouge-score-rs-")
