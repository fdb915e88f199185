"""The short forms of ``compare`` and ``evaluate_predictions``, and tables as LaTeX."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qabench
from qabench.errors import InputError
from qabench.loading_scripts import FOLDER

pytestmark = pytest.mark.quick
FILES = [FOLDER / f"fanoutqa/sample/generations/{name}.jsonl" for name in ("careful", "hasty")]


@pytest.fixture(scope="module")
def evaluations() -> list[Any]:
    return [qabench.evaluate_predictions("fanoutqa", "sample", path, lemmatizer="simplemma") for path in FILES]


def test_evaluations_are_compared_without_their_benchmark(evaluations: list[Any]) -> None:
    short = qabench.compare(evaluations, scores="acc.loose", resamples=100)
    long = qabench.compare("fanoutqa", "sample", evaluations, scores="acc.loose", resamples=100)
    assert short.as_dict() == long.as_dict()
    by_label = qabench.compare(dict(zip("ab", evaluations, strict=True)), resamples=100)
    assert set(by_label.systems) == {"a", "b"}
    for wrong in ((None,), ("fanoutqa",), ("fanoutqa", "sample")):
        with pytest.raises(InputError, match=r"give the systems: compare\(\[FIRST, SECOND\]\)"):
            qabench.compare(*wrong)
    with pytest.raises(InputError, match="given twice"):
        qabench.compare(evaluations, "sample", evaluations)


def test_tables_are_latex(evaluations: list[Any]) -> None:
    comparison = qabench.compare(evaluations, scores="acc.loose", resamples=100)
    for shown in (comparison, evaluations[0]):
        latex = shown.to_latex()
        tabulars = latex.count("\\begin{tabular}")
        assert tabulars == latex.count("\\toprule") == latex.count("\\end{tabular}") > 0
        # The tables of a comparison are in floats of their own, with the scores and the pairs.
        assert latex.count("\\caption{") == len(shown.tables())


def test_predictions_need_no_config_where_there_is_a_default(mirror: Path) -> None:
    answers = {row["id"]: "1" for row in qabench.load_dataset("fastbook", "sample", split="test")}
    short = qabench.evaluate_predictions("fastbook", answers, questions=None)
    assert short.config == qabench.benchmark("fastbook").load(None).config
    with pytest.raises(InputError, match=r"give the predictions: evaluate_predictions\(NAME, PREDICTIONS\)"):
        qabench.evaluate_predictions("fanoutqa")


@pytest.mark.quick
def test_two_evaluations_of_predictions_in_memory_are_compared() -> None:
    evaluations = []
    for answer in ("Mars", "1998"):
        answers = {question.id: answer for question in qabench.benchmark("fanoutqa").load("sample").rows}
        evaluations.append(qabench.evaluate_predictions("fanoutqa", "sample", answers, lemmatizer="simplemma"))
    comparison = qabench.compare(evaluations)
    assert len(comparison.evaluations) == 2 and len(comparison.pairs) == 1


@pytest.mark.parametrize("option", [{"only_score_answered": "no"}, {"only_score_answered": []}, {"evidence_k": "5"}])
def test_options_have_their_types(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"FanOutQA: the option \w+ is .*; allowed: (True or False|an integer)$"):
        qabench.evaluate_predictions("fanoutqa", "sample", FILES[0], **option)
    numpy_values = {"only_score_answered": np.bool_(False), "evidence_k": np.int64(5)}
    qabench.evaluate_predictions("fanoutqa", "sample", FILES[0], lemmatizer="simplemma", **numpy_values)


def test_predictions_in_memory_are_no_systems() -> None:
    wrong: Any = [[{"id": "1", "answer": "a"}], FILES[0]]
    with pytest.raises(InputError, match=r"^system 1 is a list; give a file, a log or an evaluation\."):
        qabench.compare("fanoutqa", "sample", wrong)
