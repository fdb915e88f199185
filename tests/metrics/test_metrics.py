"""All metric folders: card, doctest, signature, encoding in Arrow, bad input."""

import dataclasses
import doctest
import json
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest
from datasets import Dataset, Features, Value
from stand_ins import no_weights

import qabench
from qabench import metrics
from qabench.benchmarks import benchmark, benchmark_names
from qabench.data import answers
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
    # unanswered: no call is made; test_judge.py has the others
    "fanout_judge": (ANSWERS, [None] * len(ANSWERS)),
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
    options = OPTIONS.get(name, {}) | {"per_question": True}
    references, predictions = example
    objects = metric.compute(predictions=predictions, references=references, **options)
    texts = [answers.dumps(reference) for reference in references]
    json_text = metric.compute(predictions=predictions, references=texts, references_format="json", **options)
    column = Dataset.from_dict({"a": texts}, features=Features({"a": Value("string", id=answers.JSON_TEXT)}))["a"]
    assert objects == json_text == metric.compute(predictions=predictions, references=column, **options)
    assert objects["signature"].startswith(f"{name}|references:")
    assert len(objects["raw" if name == "fanoutqa" else "per_question"]) == len(references)
    for reference, prediction in zip(references, predictions, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert metric.compute(**options) == objects
    metric.add_batch(predictions=np.array(predictions[:2], dtype=object), references=references[:2])
    metric.add_batch(predictions=predictions[2:], references=column.source.select(range(2, len(texts)))["a"])
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
    texts = [answers.dumps(["true"]), answers.dumps("1998"), "42", "true"]
    for unclear in (["true"], ["1", "null"], ['["caf\\u00e9"]', "2"], ['"Paris"'], texts):
        with pytest.raises(InputError, match=r"could be JSON text, such as .*pass the column of the dataset itself"):
            result(unclear)
    for plain in (["10.50", "3.20"], ["10.50", "Paris"], ["1e3"], ["0.10", "42"], ["[1", "2"], ["true", "Paris"]):
        assert result(plain) == result(plain, references_format="python")
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


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_failed_computation_leaves_nothing(in_memory: bool, tmp_path: Path) -> None:
    path = str(FOLDER / "felm_factuality")
    metric = evaluate.load(path, cache_dir=str(tmp_path), keep_in_memory=in_memory)
    labels, too_few = [[True, False]], [[True]]
    for _ in range(2):
        with pytest.raises(InputError, match="1 verdicts for 2 segments"):
            metric.compute(predictions=too_few, references=labels, domains=["wk"])
        assert not list(tmp_path.rglob("*.arrow"))
    if not in_memory:
        assert not any(lock.is_locked for lock in metric.filelocks)
    result = metric.compute(predictions=labels, references=labels, domains=["wk"])
    assert result == metric.compute(predictions=labels, references=labels, domains=["wk"])
    assert result["f1"] == 1.0


def test_a_file_in_use_does_not_hide_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(f"{path} is in use, as on Windows")

    metric = evaluate.load(str(FOLDER / "felm_factuality"), cache_dir=str(tmp_path))
    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(InputError, match="1 verdicts for 2 segments"):
        metric.compute(predictions=[[True]], references=[[True, False]], domains=["wk"])
    assert not any(lock.is_locked for lock in metric.filelocks)


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


def test_a_metric_declares_and_the_scorer_computes(name: str) -> None:
    """No metric has code of its own for its scores: each number is a score of the benchmark."""
    kind = metrics.metric_class(name)
    assert "score" not in vars(kind) and "compute" not in vars(kind)
    declared = {spec.name for spec in benchmark(kind.BENCHMARK).scores}
    assert set((kind.KEYS or {}).values()) <= declared


@pytest.mark.parametrize(("name", "group"), [("fanout_rouge", "rouge"), ("felm_factuality", "felm")])
def test_a_metric_has_the_values_of_a_file(name: str, group: str) -> None:
    kind = metrics.metric_class(name)
    loaded = benchmark(kind.BENCHMARK).load("sample")
    rows = [question.row for question in loaded.rows]
    texts = [question.reference for question in loaded.rows]
    predictions = [text if number % 3 else None for number, text in enumerate(texts)]
    field = benchmark(kind.BENCHMARK).prediction_fields[0]
    lines = [{"id": question.id, field: text} for question, text in zip(loaded.rows, predictions, strict=True) if text]
    scores = qabench.evaluate_predictions(kind.BENCHMARK, "sample", lines, group).scores()
    references = [answers.loads(row["answer"]) if kind.ANSWERS else row[kind.REFERENCE] for row in rows]
    result = qabench.load_metric(name).compute(predictions=predictions, references=references)
    compared = 0
    for key, score in kind.KEYS.items():
        value: Any = result
        for part in key.split("."):
            value = value[part]
        if score in scores:
            assert value == scores[score].value, score
            compared += 1
    assert compared >= 4


def test_the_seed_of_rouge_is_that_of_the_score() -> None:
    references, predictions = EXAMPLES["expertqa_lfqa"]
    result = qabench.load_metric("expertqa_lfqa").compute(
        predictions=predictions, references=references, per_question=True
    )
    specs = {spec.name: spec for spec in benchmark("expertqa").scores}
    for kind in result["mean"]:
        values = [row[kind] for row in result["per_question"]]
        assert result[kind] == specs[kind].mean(values)


def test_a_missing_package_is_named_with_its_source(name: str) -> None:
    """Anybody could register the name on PyPI, which ``evaluate`` would tell a user to install."""
    from evaluate import loading

    imports = loading.get_imports(str(FOLDER / name / f"{name}.py"))
    sources = {path for kind, module, path, _ in imports if module == "qabench"}
    assert sources == {"git+https://github.com/qabench/qabench"}
