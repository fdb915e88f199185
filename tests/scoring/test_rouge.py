import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.answers import UNANSWERED
from qabench.errors import InputError, MissingExtra
from qabench.text import rouge as module
from qabench.text.rouge import PRF, rouge

VOCABULARY = ["the", "cats", "cat", "running", "runs", "flies", "happily", "1,234", "caresses", "generalization", "é"]
WORDS = st.lists(st.sampled_from(VOCABULARY))
TEXT = (
    WORDS.map(" ".join) | st.text(st.characters(exclude_categories=())) | st.text("aeiouyst'- \u0130\u212a\u1e9e\ufb01")
)


@given(TEXT, TEXT)
def test_both_backends_are_equal_to_the_last_bit(reference: str, prediction: str) -> None:
    assert _values([reference], [prediction], "rouge_score") == _values([reference], [prediction], "rouge_score_rs")


def _values(references: list, predictions: list, backend: str) -> tuple:
    score = rouge(references, predictions, backend)
    return score.mean, score.per_question


def test_by_hand() -> None:
    score = rouge([["Paris", "Lima"], "x"], ["paris rome", UNANSWERED])
    assert score.per_question[0]["rouge1"] == PRF(0.5, 0.5, 0.5)
    assert score.per_question[1]["rouge1"] == PRF(0, 0, 0)
    assert score.as_dict()["rougeL"] == {"precision": 0.25, "recall": 0.25, "fscore": 0.25}


def test_unknown_and_missing_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="allowed: auto, rouge_score, rouge_score_rs"):
        rouge(["a"], ["a"], "rouge")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"qabench\[fast\]"):
        rouge(["a"], ["a"], "rouge_score_rs")
    assert rouge(["a"], ["a"]).backend.startswith("rouge-score-0")
