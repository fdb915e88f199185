"""Answers of a file, split into claims: lines and notes."""

from typing import Any

import pytest

from qabench.benchmarks.expertqa.metrics import lines_with_claims
from qabench.benchmarks.expertqa.splitting import SplitAnswers, split_predictions
from qabench.data.predictions import read_predictions
from qabench.errors import InputError

ANSWER = "Mars is red [1]. Ice floats [2]."
TEXTS = ["Iron oxide", "Ice is light."]


def split(*rows: dict[str, Any]) -> SplitAnswers:
    return split_predictions(read_predictions(rows, ("answer",)))


def test_notes_of_a_file() -> None:
    answers = split(
        {"id": "cites", "answer": ANSWER, "attribution": TEXTS, "hits": ["x"]},
        {"id": "docs", "answer": ANSWER, "docs": TEXTS},
        {"id": "both", "answer": ANSWER, "attribution": TEXTS, "docs": TEXTS},
        {"id": "unmarked", "answer": "Mars is red.", "docs": TEXTS},
        {"id": "marks", "answer": "It is so [1] [2] [3] [4].", "hits": ["x"]},
        {"id": "bad", "answer": 3},
    )
    assert [line["id"] for line in answers.lines] == ["cites", "docs", "both", "unmarked", "marks"]
    assert answers.skipped == ["line 6 (id bad): the answer is 3; allowed: a string or null"]
    assert answers.read == ["attribution", "docs"]
    assert answers.ignored == ["hits"]  # docs are read in another line
    assert answers.unresolved == ["[1], [2], [3] of marks"]
    assert answers.unmarked == ["unmarked"]


def test_earlier_results_are_left_out() -> None:
    row = {"id": "1", "answer": ANSWER, "labels_by": "m", "claims": [], "fact_scores_by": "m", "mine": 1}
    (line,) = split(row).lines
    assert list(line) == ["id", "answer", "mine", "claims"]


@pytest.mark.parametrize("answer", [None, ""])
def test_missing_and_empty_answers_stay(answer: str | None) -> None:
    assert split({"id": "1", "answer": answer}).lines == [{"id": "1", "answer": answer, "claims": []}]


def test_an_error_if_no_answer_can_be_split() -> None:
    with pytest.raises(InputError, match=r"line 1 \(id 1\): the answer is 3; allowed: a string or null"):
        split({"id": "1", "answer": 3}, {"id": "2", "answer": 4})


def test_errors_of_a_metric_name_the_row() -> None:
    with pytest.raises(InputError, match=r"^predictions\[1\]: the answer has 200,001 characters; allowed: 200,000$"):
        lines_with_claims([{"answer": ANSWER}, {"answer": "x" * 200_001}])
    with pytest.raises(InputError, match=r"^predictions\[0\]: claim 2: its claim is 3; allowed: a string$"):
        lines_with_claims([{"claims": ["Ice floats.", 3]}])
