"""Every metric folder: card, doctest, signature, the trip through Arrow, bad input."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest
import yaml

import qabench
from qabench import answers, metrics
from qabench.errors import InputError
from qabench.metrics.space import score

FOLDER = Path(metrics.__file__).parent
OPTIONS: dict[str, dict[str, Any]] = {"fanout_acc": {"lemmatizer": "simplemma"}}
ANSWERS = [{"a": 1.14, "b": [True, "x"]}, ["1998", 1998], "true", 3.141592653589793, 7, False, "\ud800 x", "caf\u00e9"]
PREDICTIONS = ["a 1.14 yes", "1998", None, "", "7", "no", "\ud800 x", "cafe\u0301"]


@pytest.fixture(params=metrics.metric_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def metric(name: str) -> Any:
    return qabench.load_metric(name)


def test_there_are_metrics() -> None:
    assert {"fanout_acc", "fanout_rouge"} <= set(metrics.metric_names())
    with pytest.raises(InputError, match=r"no metric 'nope'; allowed: .*fanout_acc"):
        qabench.load_metric("nope")


def test_a_folder_holds_what_a_space_needs(name: str) -> None:
    front = yaml.safe_load((FOLDER / name / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert front["sdk"] == "gradio"
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert (FOLDER / name / front["app_file"]).read_text(encoding="utf-8").endswith(f'page("{name}").launch()\n')
    assert "qabench" in (FOLDER / name / "requirements.txt").read_text(encoding="utf-8")


def test_the_example_of_the_docstring_runs(name: str) -> None:
    module = importlib.import_module(f"qabench.metrics.{name}.{name}")
    example = doctest.DocTestParser().get_doctest(module._KWARGS_DESCRIPTION, {}, name, None, None)
    assert len(example.examples) >= 3
    assert doctest.DocTestRunner().run(example).failed == 0


def test_answers_survive_the_trip_as_column_and_as_objects(name: str, metric: Any) -> None:
    options = OPTIONS.get(name, {}) | {"per_question": True}
    objects = metric.compute(predictions=PREDICTIONS, references=ANSWERS, **options)
    column = metric.compute(predictions=PREDICTIONS, references=[answers.dumps(a) for a in ANSWERS], **options)
    assert objects == column
    assert objects["signature"].startswith(f"{name}|references:")
    assert len(objects["per_question"]) == len(ANSWERS)
    for reference, prediction in zip(ANSWERS, PREDICTIONS, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert metric.compute(**options) == objects
    metric.add_batch(predictions=np.array(PREDICTIONS[:2]), references=ANSWERS[:2])
    metric.add_batch(predictions=PREDICTIONS[2:], references=tuple(ANSWERS[2:]))
    assert metric.compute(**options) == objects


def test_which_texts_are_json(name: str, metric: Any) -> None:
    options = OPTIONS.get(name, {})

    def result(references: list[str], **more: str) -> Any:
        return metric.compute(predictions=["yes"] * len(references), references=references, **options, **more)

    assert result(["true"]) == result(["true"], references_format="json") == result([True])
    assert result(["true"]) != result(["true"], references_format="python")
    assert result(["true", "Paris"]) == result(["true", "Paris"], references_format="python")
    with pytest.raises(InputError, match="not the JSON text of an answer: 'Paris'"):
        result(["Paris"], references_format="json")
    with pytest.raises(InputError, match="allowed: auto, json, python"):
        result(["Paris"], references_format="xml")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing to score"),
        ({"predictions": [], "references": []}, "nothing to score"),
        ({"predictions": ["a"]}, "references missing"),
        ({"references": ["a"]}, "predictions missing"),
        ({"predictions": ["a"], "references": ["a", "b"]}, "1 predictions for 2 references"),
        ({"predictions": "a", "references": ["a"]}, "predictions is a str; give a list"),
        ({"predictions": ["a", b"b"], "references": ["a", "b"]}, r"predictions\[1\]: answer is a bytes"),
        ({"predictions": ["a"], "references": [{"x": (1,)}]}, r"references\[0\]: answer\['x'\] is a tuple"),
    ],
)
def test_bad_input_says_what_and_where(metric: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        metric.compute(**given)


def test_loads_by_path_and_combines(name: str) -> None:
    loaded = evaluate.load(str(FOLDER / name), keep_in_memory=True)
    result = evaluate.combine([loaded]).compute(predictions=["a"], references=["a"], **OPTIONS.get(name, {}))
    assert result["signature"]


def test_the_space_scores_and_explains(name: str) -> None:
    assert "signature" in score(name, '["France: Paris"]', '[{"France": "Paris"}]')
    assert "not JSON" in score(name, "[", "[]")["error"]
    assert "1 predictions for 2" in score(name, '["a"]', '["a", "b"]')["error"]


def test_unofficial_is_said() -> None:
    result = qabench.load_metric("fanout_acc").compute(predictions=["a"], references=["a"], lemmatizer="simplemma")
    assert result["unofficial"].startswith("simplemma-")
    assert "UNOFFICIAL" in result["signature"]


def test_official_is_what_the_model_says(spacy_model: str) -> None:
    result = qabench.load_metric("fanout_acc").compute(predictions=["a"], references=["a"], lemmatizer="spacy")
    assert ("unofficial" in result) == ("en_core_web_sm-" not in result["signature"])
