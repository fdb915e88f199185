"""All metrics take every container of values, and refuse what is not a column of values."""

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset
from stand_ins import no_weights
from typer.testing import CliRunner

import qabench
from qabench import metrics
from qabench.cli import app
from qabench.data.containers import items_of, prediction_rows
from qabench.data.predictions import read_predictions
from qabench.errors import InputError, QabenchError

OPTIONS: dict[str, dict[str, Any]] = {
    "fanout_acc": {"lemmatizer": "simplemma"},
    "fanoutqa": {"lemmatizer": "simplemma", "judge": False},
}
CLAIM = {"claim_string": "x", "evidence": ["x"], "support": "Complete", "worthiness": "Yes", "correctness": "Unsure"}


def row(id: str, label: str = "Y", score: float = 1.0) -> dict[str, Any]:
    claims = [CLAIM | {"autoais_label": label, "fact_score": score}]
    return {"example_id": id, "answers": [{"system": "gpt4", "answer_string": id, "claims": claims}]}


ROWS = [row("a"), row("b", "N", 0.0), row("c")]
TEXTS = ["Paris", "Rome", "Lima"]
COMPONENTS = [[{"context": [text]}] for text in TEXTS]
# metric -> references and predictions, of which some are wrong
SIDES: dict[str, tuple[list[Any], list[Any]]] = {
    "answer_component_mrr": (COMPONENTS, [["Paris"], ["x"], ["x", "Lima"]]),
    "answer_component_recall": (COMPONENTS, [["Paris"], ["x"], ["x", "Lima"]]),
    "expertqa_autoais": (ROWS, [["Y"], ["N"], ["Y"]]),
    "expertqa_autoais_agreement": (ROWS, [["Y"], ["N"], ["Y"]]),
    "expertqa_factscore_agreement": (ROWS, [[1.0], [0.0], [0.7]]),
    "fanout_evidence": ([[{"title": text}] for text in TEXTS], [["Paris"], ["x"], ["Lima"]]),
    "fanout_judge": (TEXTS, [None, None, None]),
    "felm_factuality": ([[True], [False], [True]], [[True], [True], [False]]),
}
TAKEN: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "generator": lambda items: (item for item in items),
    "array of objects": lambda items: pd.Series(items, dtype=object).to_numpy(),
    "Series": lambda items: pd.Series(items, dtype=object, index=range(5, 5 + len(items))),
    "frame with one column": lambda items: pd.DataFrame({"some": pd.Series(items, dtype=object)}),
    "Arrow": pa.array,
    "chunked Arrow": lambda items: pa.chunked_array([items[:1], items[1:]], pa.array(items).type),
    "Arrow table": lambda items: pa.table({"some": pa.array(items)}),
    "column of datasets": lambda items: Dataset.from_dict({"some": items})["some"],
    "dataset with one column": lambda items: Dataset.from_dict({"some": items}),
    "record batch": lambda items: pa.record_batch({"some": pa.array(items)}),
    "column of a stream": lambda items: Dataset.from_dict({"some": items}).to_iterable_dataset()["some"],
    "stream with one column": lambda items: Dataset.from_dict({"some": items}).to_iterable_dataset(),
    "values of a dict": lambda items: dict(enumerate(items)).values(),
    "map": lambda items: map(copy.copy, items),
}
REFUSED: dict[str, Any] = {
    "set": {"a", "b"},
    "dict": {"a": "b"},
    "string": "a",
    "number": 3,
    "array of no dimension": np.array("a"),
    "frame with two columns": pd.DataFrame({"x": ["a"], "y": ["b"]}),
    "Arrow table with two columns": pa.table({"x": ["a"], "y": ["b"]}),
}


@pytest.fixture(autouse=True)
def _no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    no_weights(monkeypatch)


@pytest.fixture(params=metrics.metric_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sides(name: str) -> tuple[list[Any], list[Any]]:
    return SIDES.get(name, (TEXTS, ["Paris", "Oslo", "Lima, Peru"]))


def compute(name: str, predictions: Any, references: Any, **options: Any) -> Any:
    options = OPTIONS.get(name, {}) | options
    return qabench.load_metric(name).compute(predictions=predictions, references=references, **options)


def test_every_container_of_values_has_the_scores_of_the_list(name: str) -> None:
    references, predictions = sides(name)
    expected = compute(name, predictions, references)
    is_of_rows = metrics.metric_class(name).ROWS
    for container, made in TAKEN.items():
        # a frame of whole rows has their fields as columns
        given = (
            references
            if is_of_rows and ("column" in container or "table" in container or "batch" in container)
            else made(references)
        )
        assert compute(name, made(predictions), given) == expected, container
        without_first = compute(name, made([None, *predictions[1:]]), references)
        assert without_first == compute(name, [None, *predictions[1:]], references), container


def test_the_order_of_the_questions_has_no_effect(name: str) -> None:
    references, predictions = sides(name)
    scores = compute(name, predictions, references, flat=True)
    for order in ([2, 1, 0], [1, 2, 0]):
        ordered = [[side[i] for i in order] for side in (predictions, references)]
        others = compute(name, *ordered, flat=True)
        # the official ROUGE of ExpertQA is a median of resamples, which are drawn by position
        compared = [key for key in scores if name != "expertqa_lfqa" or key.startswith("mean_")]
        assert compared
        assert {key: others[key] for key in compared} == pytest.approx({key: scores[key] for key in compared})


def test_what_is_not_a_column_is_refused(name: str) -> None:
    references, predictions = sides(name)
    is_of_rows = metrics.metric_class(name).ROWS
    for kind, given in REFUSED.items():
        if is_of_rows and "columns" in kind:
            continue
        with pytest.raises(InputError, match=r"predictions is a .*it must be a list"):
            compute(name, given, references)
        with pytest.raises(InputError, match=r"references is a .*it must be a list"):
            compute(name, predictions, given)


def test_a_missing_prediction_is_no_answer_and_not_official(name: str) -> None:
    references, predictions = sides(name)
    expected = compute(name, [None, *predictions[1:]], references)
    assert "questions have no prediction" in expected["deviations"][-1]
    for missing in (math.nan, np.nan, pd.NA, pd.NaT, pa.scalar(None), np.ma.masked):
        assert compute(name, [missing, *predictions[1:]], references) == expected


def test_lists_of_missing_replies_are_missing_predictions() -> None:
    labels, replies = [[True, False], [True], [False]], [[None, None], [None], ["Answer: 1", None]]
    result = compute("felm_factuality", replies, labels)
    assert "2 of 3 questions have no prediction" in result["deviations"]


def test_a_prediction_without_pages_is_named() -> None:
    references, predictions = sides("fanout_evidence")
    for wrong in ([None], "Rome"):
        with pytest.raises(InputError, match=r"^predictions\[1\]: "):
            compute("fanout_evidence", [predictions[0], wrong, predictions[2]], references)


@pytest.mark.parametrize("name", [name for name in SIDES if name.startswith("expertqa")])
def test_verdicts_of_rows_belong_to_their_claims(name: str) -> None:
    verdicts = [{"autoais_label": "Y", "fact_score": 1.0}, {"autoais_label": "N", "fact_score": 0.0}]
    claims = [CLAIM | {"claim_string": text} | verdict for text, verdict in zip("ab", verdicts, strict=True)]
    claims[1] |= {"support": "Missing", "correctness": "Definitely correct"}
    answer = {"system": "bing_chat", "answer_string": "a"}
    first, second = ({"answers": [answer | {"claims": each}]} for each in (claims, claims[::-1]))
    assert compute(name, [second], [first]) == compute(name, [first], [first])
    spaced = [claim | {"claim_string": f" {claim['claim_string']}\n"} for claim in claims]
    assert compute(name, [{"answers": [answer | {"claims": spaced}]}], [first]) == compute(name, [first], [first])
    # Without texts, a row is a list of verdicts.
    assert compute(name, [{"answers": [{"claims": verdicts}]}], [first]) == compute(name, [first], [first])


@pytest.mark.parametrize("name", [name for name in SIDES if name.startswith("expertqa")])
@pytest.mark.parametrize(
    ("texts", "others"), [("ab", "cd"), ("ab", "ac"), ("ab", "cb"), ("ab", "ca"), ("aabb", "abab")]
)
def test_verdicts_on_other_claims_are_refused(name: str, texts: str, others: str) -> None:
    """Such as those on the claims of another answer with as many claims."""
    verdict = {"autoais_label": "Y", "fact_score": 1.0}
    rows = []
    for side in (texts, others):
        claims = [CLAIM | verdict | {"claim_string": text} for text in side]
        rows.append({"answers": [{"system": "bing_chat", "answer_string": "a", "claims": claims}]})
    with pytest.raises(
        InputError, match=rf"references\[0\] has other claims .*claim \d is .* list of {len(texts)} verd"
    ):
        compute(name, [rows[1]], [rows[0]])


def test_errors_about_rows_say_what_predictions_are() -> None:
    claims = [CLAIM | {"claim_string": "a", "autoais_label": "X"}]
    row = {"answers": [{"system": "bing_chat", "answer_string": "a", "claims": claims}]}
    with pytest.raises(InputError, match="predictions are such rows with the field autoais_label, or a list of"):
        compute("expertqa_autoais_agreement", [row], [row])


def test_a_missing_reference_is_an_error(name: str) -> None:
    references, predictions = sides(name)
    if name == "expertqa_autoais":
        pytest.skip("its references are optional")
    for missing in (None, math.nan, pd.NA):
        with pytest.raises(InputError, match=r"references\[1\] is missing"):
            compute(name, predictions, [references[0], missing, references[2]])
    with pytest.raises(InputError, match="reference missing"):
        qabench.load_metric(name).add(prediction=predictions[0])


@pytest.mark.parametrize("reference", [{"a": None}, [None], ["x", math.nan]])
def test_a_missing_part_of_an_answer_is_an_error(reference: Any) -> None:
    with pytest.raises(InputError, match=r"references\[0\]"):
        compute("fanout_acc", ["x"], [reference])


@pytest.mark.parametrize("name", ["expertqa_autoais", "expertqa_autoais_agreement", "expertqa_factscore_agreement"])
def test_rows_are_matched_by_id(name: str) -> None:
    expected = compute(name, ROWS, ROWS)
    assert compute(name, [ROWS[2], ROWS[0], ROWS[1]], ROWS) == expected
    with pytest.raises(InputError, match="on one side only"):
        compute(name, [ROWS[0], ROWS[1], row("d")], ROWS)
    with pytest.raises(InputError, match="repeated"):
        compute(name, [ROWS[0], ROWS[1], ROWS[1]], ROWS)


def test_a_stream_with_unknown_columns_says_so() -> None:
    stream = Dataset.from_dict({"a": ["x"], "b": ["y"]}).to_iterable_dataset().map(dict)
    with pytest.raises(InputError, match=r"a IterableDataset without known columns, such as after map\(\); it must be"):
        compute("fanout_acc", stream, ["x"])


def test_rows_are_not_answers() -> None:
    rows = [{"id": "1", "question": "q", "answer": "Rome"}]
    with pytest.raises(InputError, match=r"pass only its 'answer': references=\[row\['answer'\] for row in rows\]"):
        compute("fanout_acc", ["Rome"], rows)
    with pytest.raises(InputError, match="pass only its 'answer'"):
        compute("fanout_acc", [{"id": "1", "answer": "Rome"}], ["Rome"])
    with pytest.raises(InputError, match=r"columns 'id', 'question', 'answer'.*references=...\['answer'\]"):
        compute("fanout_acc", ["Rome"], Dataset.from_list(rows))


def test_short_floats_are_what_they_print() -> None:
    short = np.array([1.1, 2.5], dtype=np.float32)
    for column in (short, pd.Series(short), list(short), pa.array(short)):
        assert items_of(column, "references") == [1.1, 2.5]
    assert compute("fanout_acc", ["1.1"], [[short[0]]])["loose"] == 1.0
    nested = pa.array([[1.1, 2.5], None], pa.list_(pa.float32()))
    for column in (nested, pa.chunked_array([nested]), pa.array([[1.1, 2.5], None], pa.list_(pa.float16()))):
        assert items_of(column, "references") == [[1.1, 2.5], None]
    assert items_of(pa.array([1.1]), "references") == [1.1]


def test_columns_of_polars_are_values(name: str) -> None:
    polars = pytest.importorskip("polars", reason="needs polars")
    references, predictions = sides(name)
    expected = compute(name, predictions, references)
    is_of_rows = metrics.metric_class(name).ROWS
    for made in (polars.Series, lambda items: polars.DataFrame({"some": items})):
        assert compute(name, made(predictions), references if is_of_rows else made(references)) == expected
    two = polars.DataFrame({"x": predictions, "y": predictions})
    for frame in () if is_of_rows else (two, two.lazy()):  # whole rows may be a frame
        with pytest.raises(InputError, match=r"predictions is a .* with the columns 'x', 'y'"):
            compute(name, frame, references)
    rows = polars.DataFrame({"id": ["1", "2"], "answer": ["a", None]})
    for frame in (rows, rows.lazy()):
        assert prediction_rows(frame, ("answer",)) == [{"id": "1", "answer": "a"}]
        assert items_of(frame.select("answer"), "predictions") == ["a", None]
    short = polars.Series([[1.1, 2.5], None], dtype=polars.List(polars.Float32))
    assert items_of(short, "references") == [[1.1, 2.5], None]


def test_verdicts_as_text_are_refused() -> None:
    for texts in (["[true]", "[false]"], ["True", None], [["True"], ["False"]]):
        with pytest.raises(InputError, match="verdicts written as text"):
            compute("felm_factuality", texts, [[True], [False]])
    # one such reply among others is a reply
    assert compute("felm_factuality", ["True", "Answer: 1"], [[True], [False]])["unparsed"] == 1


def test_a_component_needs_its_contexts() -> None:
    with pytest.raises(InputError, match=r"references\[0\]"):
        compute("answer_component_mrr", [["x"]], [[{"explicit_context": True}]])


def test_flat_results_have_only_numbers(name: str) -> None:
    references, predictions = sides(name)
    flat = compute(name, predictions, references, flat=True)
    assert flat and all(type(value) in (int, float) for value in flat.values())
    if name == "fanout_rouge":
        assert flat["rouge1"] == flat["rouge1_fscore"] == compute(name, predictions, references)["rouge1"]["fscore"]


def test_combined_metrics_take_single_items() -> None:
    combined = evaluate.combine([qabench.load_metric(name) for name in ("fanout_acc", "fanout_rouge")])
    for prediction, reference in zip(TEXTS, reversed(TEXTS), strict=True):
        combined.add(prediction=prediction, reference=reference)
    result = combined.compute(lemmatizer="simplemma")
    for prediction, reference in zip(TEXTS, reversed(TEXTS), strict=True):
        combined.add(predictions=prediction, references=reference)
    assert combined.compute(lemmatizer="simplemma") == result and result["loose"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("seed", ["x", -1, True, 1 << 32])
def test_a_seed_is_checked(seed: Any) -> None:
    with pytest.raises(InputError, match="seed must be between 0 and 2"):
        compute("expertqa_lfqa", ["a"], ["a"], seed=seed)


def test_a_score_out_of_range_never_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = qabench.load_metric("fanout_evidence")
    for value in (-4.66, 1.5, math.nan):
        monkeypatch.setattr(metric, "score", lambda *_, value=value: {"recall": value, "deviations": []})
        with pytest.raises(QabenchError, match=r"recall is .*outside its range"):
            metric.compute(predictions=[["a"]], references=[[{"title": "a"}]])


def test_predictions_by_id_and_frames_are_rows() -> None:
    rows = [{"id": "1", "answer": "a"}, {"id": "2", "answer": "b"}]
    frame = pd.DataFrame([*rows, {"id": "3", "answer": None}])
    fields = ("answer",)
    given: list[Any] = [{"1": "a", "2": "b", "3": None}, frame, pa.Table.from_pandas(frame), Dataset.from_pandas(frame)]
    for predictions in given:
        assert prediction_rows(predictions, fields) == rows
    for wrong in (["a", "b"], {"a"}, pd.Series(["a"]), frame[["id"]], frame[["answer"]]):
        with pytest.raises(InputError, match="id"):
            prediction_rows(wrong, fields)


def test_evaluate_predictions_takes_a_dict_and_a_frame() -> None:
    ids = list(qabench.load_dataset("fanoutqa", "sample", split="validation")["id"])
    rows = [{"id": id, "answer": "Paris"} for id in ids]

    def scores(predictions: Any) -> Any:
        return qabench.evaluate_predictions("fanoutqa", "sample", predictions, "acc", lemmatizer="simplemma").scores()

    expected = scores(rows)
    assert scores(dict.fromkeys(ids, "Paris")) == expected
    assert scores(pd.DataFrame(rows)) == expected
    with pytest.raises(InputError, match="a list of strings, without the ids"):
        scores(["Paris"] * len(ids))


def test_answers_that_are_not_strings_are_named_everywhere(tmp_path: Path) -> None:
    answers: list[Any] = [{"France": "Paris"}, ["Lima"], True, "Rome", None, 3]
    rows = qabench.load_dataset("fanoutqa", "sample", split="validation").select(range(len(answers)))
    counted = "answers that are not strings: 4 ("
    for name in ("fanout_acc", "fanout_rouge", "fanoutqa", "fanout_bleurt"):
        deviations = compute(name, answers, rows["answer"])["deviations"]
        (sentence,) = [each for each in deviations if each.startswith(counted)]
        assert sentence.endswith("(predictions[0], predictions[1], predictions[2], predictions[5])")
        assert not any("strings" in each for each in compute(name, ["a"] * 6, rows["answer"])["deviations"])
    predictions = [{"id": id, "answer": answer} for id, answer in zip(rows["id"], answers, strict=True)]
    evaluation = qabench.evaluate_predictions("fanoutqa", "sample", predictions, "rouge")
    assert any(each.startswith(counted) for each in evaluation.problems)
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in predictions))
    arguments = ["score", "fanoutqa", str(file), "--config", "sample", "--scores", "rouge", "--json"]
    shown = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert any(each.startswith(counted) for each in shown["evaluations"][0]["problems"])


def test_an_answer_that_is_a_row_is_refused_in_files() -> None:
    rows = [{"id": "1", "answer": {"id": "1", "answer": "Rome"}}, {"id": "2", "answer": {"id": "a river"}}]
    (line,) = read_predictions(rows, ["answer"]).bad_lines
    assert "the field 'answer' is itself a row with the keys 'id', 'answer'" in line.reason


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("fanoutqa", {"answer": "a", "pages": ["Jupiter"]}),
        ("felm", {"reply": ["Answer: 1", "ALL_CORRECT"]}),
        ("fastbook", {"passages": ["a", "b"]}),
        ("expertqa", {"answer": "a", "claims": [{"claim": "a", "evidence": ["b"], "label": "Y"}]}),
    ],
)
def test_rows_have_the_values_that_a_file_has(name: str, fields: dict[str, Any], tmp_path: Path) -> None:
    ids = [question.id for question in qabench.benchmark(name).load("sample").rows]
    rows = [{"id": id, **fields} for id in ids]
    rows[-1] = {"id": ids[-1], **dict.fromkeys(fields)}
    file = tmp_path / "rows.parquet"
    Dataset.from_list(rows).to_parquet(file)
    # pandas reads lists as arrays, and null as None or NaN.
    records = pd.read_parquet(file).to_dict("records")
    records[-1] = {"id": ids[-1], **dict.fromkeys(fields, math.nan)}
    expected = qabench.evaluate_predictions(name, "sample", file)
    evaluation = qabench.evaluate_predictions(name, "sample", records)
    assert evaluation.scores() == expected.scores() and evaluation.problems == expected.problems
    assert [record.status for record in evaluation.records] == [record.status for record in expected.records]
