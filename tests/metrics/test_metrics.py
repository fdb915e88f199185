"""All metric folders: card, doctest, signature, encoding in Arrow, bad input."""

import dataclasses
import doctest
import inspect
import json
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest
from stand_ins import no_weights

import qabench
from qabench import answers, metrics
from qabench.benchmarks import benchmark_names
from qabench.errors import InputError

FOLDER = Path(metrics.__file__).parent
OPTIONS: dict[str, dict[str, Any]] = {
    "fanout_acc": {"lemmatizer": "simplemma"},
    "fanoutqa": {"lemmatizer": "simplemma", "judge": False},
}
ANSWERS = [{"a": 1.14, "b": [True, "x"]}, ["1998", 1998], "true", 3.141592653589793, 7, False, "\ud800 x", "caf\u00e9"]
PREDICTIONS = ["a 1.14 yes", "1998", None, "", "7", "no", "\ud800 x", "cafe\u0301"]
COMPONENTS = [
    [{"context": ["a"], "explicit_context": True}, {"context": ["\ud800 x", "caf\u00e9"]}],
    [{"context": []}],
    [{"context": ["1.14"]}],
]
PASSAGES = [["x a", "cafe\u0301 y"], None, ["1.14", "\ud800"]]
CLAIM = {"claim_string": "caf\u00e9", "evidence": ["x"], "support": "Complete", "worthiness": "Yes"}
CLAIMS = [CLAIM | {"correctness": "Unsure", "autoais_label": "Y", "fact_score": 1 / 3}, CLAIM | {"correctness": None}]
ROWS = [{"answers": [{"system": "gpt4", "answer_string": text, "claims": CLAIMS}]} for text in ("a", "b", "1.14")]
# References and predictions for metrics that do not take answers.
EXAMPLES: dict[str, tuple[list[Any], list[Any]]] = {
    "answer_component_mrr": (COMPONENTS, PASSAGES),
    "answer_component_recall": (COMPONENTS, PASSAGES),
    "expertqa_autoais": (ROWS, [["Y", "N"], None, ROWS[2]]),
    "expertqa_autoais_agreement": (ROWS, [["Y", "N"], None, ROWS[2]]),
    "expertqa_factscore_agreement": (ROWS, [[0.1, 1], None, ROWS[2]]),
    "fanout_judge": (ANSWERS, [None] * len(ANSWERS)),  # unanswered: no call is made; test_judge.py has the others
    "expertqa_lfqa": (["caf\u00e9 \ud800 x", "1998", "b\nc"], ["cafe\u0301 x", None, "\ud800 c"]),
    "fanout_evidence": (
        [[{"title": "caf\u00e9"}, {"title": "b", "pageid": 7}], [{"title": "c"}], [{"title": "\ud800"}]],
        [["cafe\u0301", 7, "https://en.wikipedia.org/wiki/x"], None, ["\ud800"]],
    ),
    "felm_factuality": ([[True, False], [True], [False]], [[True, True], None, ["Answer: 1", "\ud800"]]),
}


@pytest.fixture(autouse=True)
def _no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    no_weights(monkeypatch)


@pytest.fixture(params=metrics.metric_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def metric(name: str) -> Any:
    return qabench.load_metric(name)


@pytest.fixture
def example(name: str) -> tuple[list[Any], list[Any]]:
    """References and predictions for the metric."""
    return EXAMPLES.get(name, (ANSWERS, PREDICTIONS))


def test_there_are_metrics() -> None:
    named = {qabench.load_metric(name).BENCHMARK for name in metrics.metric_names()}
    assert named == set(benchmark_names())


def test_the_example_of_the_docstring_runs(name: str) -> None:
    example = doctest.DocTestParser().get_doctest(metrics.metric_class(name).INPUTS, {}, name, None, None)
    assert len(example.examples) >= 3  # import, load, compute
    assert doctest.DocTestRunner().run(example).failed == 0


def test_answers_round_trip_as_column_and_objects(name: str, metric: Any, example: Any) -> None:
    per_question = "per_question" in inspect.signature(metric.score).parameters
    options = OPTIONS.get(name, {}) | ({"per_question": True} if per_question else {})
    references, predictions = example
    objects = metric.compute(predictions=predictions, references=references, **options)
    column = metric.compute(predictions=predictions, references=[answers.dumps(a) for a in references], **options)
    assert objects == column and objects["signature"].startswith(f"{name}|references:")
    if per_question:
        assert len(objects["raw" if name == "fanoutqa" else "per_question"]) == len(references)
    for reference, prediction in zip(references, predictions, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert metric.compute(**options) == objects
    metric.add_batch(predictions=np.array(predictions[:2], dtype=object), references=references[:2])
    metric.add_batch(predictions=predictions[2:], references=tuple(references[2:]))
    assert metric.compute(**options) == objects


@pytest.mark.parametrize("name", ["fanoutqa"])
def test_all_scores_in_one_are_checked(metric: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from qabench.benchmarks.fanoutqa.scorer import FanOutQAScorer

    score = FanOutQAScorer.score

    def broken(scorer: Any, items: Any, progress: Any = None) -> Any:
        outcomes = score(scorer, items, progress)
        return [dataclasses.replace(outcome, scores={"acc.loose": "1"}) for outcome in outcomes]

    monkeypatch.setattr(FanOutQAScorer, "score", broken)
    with pytest.raises(InputError, match=r"fanoutqa: its scorer returned .* the score 'acc.loose': '1'; allowed"):
        metric.compute(predictions=["Paris"], references=["Paris"], **OPTIONS["fanoutqa"])


def test_detection_of_json() -> None:
    metric = qabench.load_metric("fanout_acc")

    def result(references: list[Any], **more: str) -> Any:
        options = OPTIONS["fanout_acc"] | more
        return metric.compute(predictions=["yes"] * len(references), references=references, **options)

    assert result(["true"], references_format="json") == result([True])
    for unclear in (["true"], ["1", "null"], ['["caf\\u00e9"]', "2"]):
        with pytest.raises(InputError, match="pass references_format="):
            result(unclear)
    for plain in (["10.50", "3.20"], ["10.50", "Paris"], ["1e3"], ["0.10", "42"], ["[1", "2"]):
        assert result(plain) == result(plain, references_format="python")
    column = answers.dumps(["true"]), answers.dumps("1998"), "42", "true"
    assert result(list(column)) == result(list(column), references_format="json")
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
        ({"predictions": "a", "references": ["a"]}, "predictions is a str; it must be a list"),
        (
            {"predictions": ["a", b"b"], "references": ["a", "b"]},
            r"predictions\[1\]: the answer cannot be written as JSON: b'b' is a bytes",
        ),
        ({"predictions": ["a"], "references": [{"x": {1}}]}, r"references\[0\]: .*\{1\} is a set"),
    ],
)
def test_bad_input_is_named(metric: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        metric.compute(**given)


def test_loads_by_path_and_combines(name: str, example: Any) -> None:
    references, predictions = ([items[0]] for items in example)
    loaded = evaluate.load(str(FOLDER / name), keep_in_memory=True)
    options = OPTIONS.get(name, {})
    result = evaluate.combine([loaded]).compute(predictions=predictions, references=references, **options)
    assert result["signature"]


def test_citation_and_description(name: str, metric: Any) -> None:
    assert metric.citation.count("@") == 1 + bool(type(metric).CITATION)
    assert metric.description and metric.inputs_description.startswith("Args:\n    predictions: ")


def test_features_are_those_of_the_example(name: str, metric: Any) -> None:
    kinds = metric.features if isinstance(metric.features, list) else [metric.features]
    shown = json.loads((FOLDER / name / "example.json").read_text(encoding="utf-8"))
    references = list(map(answers.dumps, shown["references"])) if metric.ANSWERS else shown["references"]
    for prediction, reference in zip(shown["predictions"], references, strict=True):
        if prediction is not None:
            given = [prediction, reference]
            written = [plain(each.encode_example(dict(zip(each, given, strict=True))), given) for each in kinds]
            assert given in written


def plain(encoded: dict[str, Any], given: Any) -> list[Any]:
    """Return encoded values without the missing fields that the given ones do not have."""
    return json.loads(
        json.dumps(list(encoded.values())),
        object_hook=lambda value: {key: part for key, part in value.items() if part is not None},
    )


def test_unknown_options_name_the_metric() -> None:
    metrics = [qabench.load_metric("fanout_acc"), qabench.load_metric("fanout_rouge")]
    combined = evaluate.combine(metrics)
    assert combined.compute(predictions=["a"], references=["a"], lemmatizer="simplemma")["loose"] == 1.0
    with pytest.raises(InputError, match="fanout_rouge has no option 'lemmatizer'; allowed: per_question"):
        metrics[1].compute(predictions=["a"], references=["a"], lemmatizer="simplemma")
    with pytest.raises(InputError, match="no option 'lematizer'"):
        combined.compute(predictions=["a"], references=["a"], lematizer="simplemma")
    with pytest.raises(InputError, match=r"fanout_acc has no option 'lematizer' \(did you mean 'lemmatizer'"):
        metrics[0].compute(predictions=["a"], references=["a"], lematizer="simplemma")
