"""A string is JSON only if its column says so, and it is exactly what our writer writes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset, Features, Value

import qabench
from qabench.adapters.columns import score_dataset
from qabench.data.answers import JSON_TEXT, dumps, dumps_read, loads, read_written
from qabench.data.containers import is_json_text, json_columns, prediction_rows
from qabench.data.predictions import read_predictions
from qabench.errors import InputError
from qabench.hub.build import build
from qabench.loading_scripts import dataset_table

LEMMATIZER = {"lemmatizer": "simplemma"}
ANSWERS: list[Any] = [{"France": "Paris", "Peru": True}, ["10.50", 3], "Rome", "42", 1.14, True]
FEATURES = Features({"id": Value("string"), "answer": Value("string", id=JSON_TEXT)})


def declared(texts: list[str]) -> Dataset:
    """Return a dataset whose column ``answer`` says that it is JSON text."""
    ids = list(map(str, range(len(texts))))
    return Dataset.from_dict({"id": ids, "answer": texts}, features=FEATURES)


# As JSON files have them: escaped characters, also half of one, numbers of all kinds, and equal names.
READ = [
    '{"a": ["\\u00e9\\ud83d\\ude00", 1e400, -0.0, 12345678901234567890, null]}',
    '"\\ud83d"',
    '{"a": 1, "a": 2}',
    "NaN",
    "[[]]",
]


@pytest.mark.parametrize("text", [*READ, *map(dumps, ANSWERS)])
def test_values_of_a_file_have_the_same_text(text: str) -> None:
    assert dumps_read(loads(text)) == dumps(loads(text))


def accuracy(references: Any, **options: Any) -> Any:
    metric = qabench.load_metric("fanout_acc")
    return metric.compute(predictions=["France: Paris, Peru: yes"] * 6, references=references, **LEMMATIZER, **options)


@pytest.fixture(scope="module")
def rows() -> Dataset:
    return declared(list(map(dumps, ANSWERS)))


# what people do with a dataset before they score it
KEPT: dict[str, Callable[[Dataset], Any]] = {
    "column": lambda rows: rows["answer"],
    "selected": lambda rows: rows.select(range(6))["answer"],
    "shuffled and sorted": lambda rows: rows.shuffle(seed=1).sort("id")["answer"],
    "mapped": lambda rows: rows.map(lambda row: {"answer": row["answer"]})["answer"],
    "renamed": lambda rows: rows.rename_column("answer", "reference")["reference"],
    "streamed": lambda rows: rows.to_iterable_dataset()["answer"],
    "one column": lambda rows: rows.select_columns("answer"),
    "Arrow table": lambda rows: rows.select_columns("answer").with_format("arrow")[:],
    "record batch": lambda rows: rows.select_columns("answer").with_format("arrow")[:].to_batches()[0],
}
LOST: dict[str, Callable[[Dataset], Any]] = {
    "list": lambda rows: list(rows["answer"]),
    "slice": lambda rows: rows[:6]["answer"],
    "Series": lambda rows: rows.to_pandas()["answer"],
    "array": lambda rows: rows.to_pandas()["answer"].to_numpy(),
    "Arrow column": lambda rows: rows.with_format("arrow")[:]["answer"],
    "comprehension": lambda rows: [row["answer"] for row in rows],
}


@pytest.mark.parametrize("how", KEPT)
def test_a_column_says_that_it_is_json(how: str, rows: Dataset) -> None:
    expected = accuracy(ANSWERS)
    given = KEPT[how](rows)
    assert is_json_text(given) and accuracy(given) == expected
    for form in ("json", "python"):  # the format is about what no column says
        assert accuracy(KEPT[how](rows), references_format=form) == expected


@pytest.mark.parametrize("how", LOST)
def test_a_list_of_texts_does_not_say_it(how: str, rows: Dataset) -> None:
    given = LOST[how](rows)
    assert not is_json_text(given)
    with pytest.raises(InputError, match=r"could be JSON text.*the column of the dataset itself.*references_format"):
        accuracy(given)
    assert accuracy(given, references_format="json") == accuracy(ANSWERS)
    assert accuracy(given, references_format="python") != accuracy(ANSWERS)


def test_a_reference_does_not_depend_on_the_others() -> None:
    metric = qabench.load_metric("fanout_acc")
    for texts in (["10.50", "3.20"], ["10.50", "Paris"], ["1e3", "0.10"], ["true", "Paris"]):
        result = metric.compute(predictions=texts, references=texts, per_question=True, **LEMMATIZER)
        assert [row["loose"] for row in result["per_question"]] == [1.0] * len(texts)
    column = declared(list(map(dumps, texts)))["answer"]
    metric.add_batch(predictions=["10.50"], references=["10.50"])
    metric.add_batch(predictions=texts, references=column)
    assert metric.compute(**LEMMATIZER)["strict"] == 1.0


@pytest.mark.parametrize("text", ["Paris", "10.50", "1e3", '["a","b"]', '"caf\\u00e9"', "[1", "", " 1"])
def test_a_text_that_our_writer_does_not_write_is_an_error(text: str, tmp_path: Path) -> None:
    said = r"is not JSON text as qabench.data.answers.dumps writes it"
    with pytest.raises(InputError, match=said):
        read_written(text)
    rows = declared(['"Rome"', text])
    for predictions, references in ((["a", "b"], rows["answer"]), (rows["answer"], ["a", "b"])):
        with pytest.raises(InputError, match=rf"(predictions|references)\[1\]: .*{said}"):
            qabench.load_metric("fanout_acc").compute(predictions=predictions, references=references, **LEMMATIZER)
    with pytest.raises(InputError, match=f"row 1, column 'answer': .*{said}"):
        prediction_rows(rows, ["answer"])
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=f"row 1, column 'answer': .*{said}"):
        read_predictions(tmp_path / "rows.parquet", ["answer"])
    with pytest.raises(InputError, match=rf"answer\[1\]: .*{said}"):
        score_dataset(rows.add_column("prediction", ["a", "b"]), tmp_path / "out", "fanoutqa", ["acc"])


def test_what_the_writer_writes_is_read_with_its_types() -> None:
    for answer in [*ANSWERS, "caf\u00e9 \U0001f600", "1998", "true", None, [], {"a": [1, {"b": 2.5e300}]}, "\ud800"]:
        value = read_written(dumps(answer))
        assert value == answer and type(value) is type(answer)


@pytest.mark.parametrize("kind", ["Dataset", "Arrow", "Parquet", "saved"])
def test_predictions_of_a_column_of_json_are_answers(kind: str, rows: Dataset, tmp_path: Path) -> None:
    expected = [{"id": str(i), "answer": answer} for i, answer in enumerate(ANSWERS)]
    if kind == "Parquet":
        rows.to_parquet(tmp_path / "rows.parquet")
        given = read_predictions(tmp_path / "rows.parquet", ["answer"])
    elif kind == "saved":
        rows.save_to_disk(tmp_path / "rows")
        given = read_predictions(tmp_path / "rows", ["answer"])
    else:
        given = read_predictions(
            prediction_rows(rows if kind == "Dataset" else rows.with_format("arrow")[:], ["answer"]), ["answer"]
        )
    assert [dict(row.fields) for row in given.rows] == expected
    # a frame that has lost the features has texts, as a file of a model's answers
    texts = prediction_rows(rows.to_pandas(), ["answer"])
    assert texts == [{"id": str(i), "answer": dumps(answer)} for i, answer in enumerate(ANSWERS)]


def test_the_references_as_predictions_are_right() -> None:
    rows = qabench.load_dataset("fanoutqa", "sample", split="validation")
    evaluation = qabench.evaluate_predictions("fanoutqa", "sample", rows, "acc", **LEMMATIZER)
    assert any(problem.startswith("answers that are not strings: 11 (") for problem in evaluation.problems)
    metric = qabench.load_metric("fanout_acc")
    result = metric.compute(predictions=rows["answer"], references=rows["answer"], **LEMMATIZER)
    assert result["loose"] == evaluation.scores()["acc.loose"].value


def test_rows_of_the_benchmark_are_scored_by_their_columns(tmp_path: Path) -> None:
    rows = qabench.load_dataset("fanoutqa", "sample", split="validation")
    whole = rows.add_column("prediction", rows["answer"]).cast_column("prediction", Value("string", id=JSON_TEXT))
    (path,) = score_dataset(whole, tmp_path / "read", "fanoutqa", ["acc"], options=LEMMATIZER)
    expected = qabench.load_metric("fanout_acc").compute(
        predictions=rows["answer"], references=rows["answer"], per_question=True, **LEMMATIZER
    )
    loose = Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))["acc.loose"]
    assert list(loose) == [row["loose"] for row in expected["per_question"]]


def test_datasets_say_which_columns_are_json(tmp_path: Path) -> None:
    assert dataset_table("fanoutqa").json_columns == ["answer", "decomposition"]
    assert dataset_table("felm").json_columns == []
    ours = qabench.load_dataset("fanoutqa", "sample", split="validation")
    build(tmp_path, ["fanoutqa"], ["sample"])
    folder = str(tmp_path / "fanoutqa")
    files = [str(path) for path in (tmp_path / "fanoutqa/sample").glob("*.parquet")]
    copies = {
        "ours": ours,
        "built": datasets.load_dataset(folder, "sample", split="validation", cache_dir=str(tmp_path / "a")),
        "streamed": datasets.load_dataset(folder, "sample", split="validation", streaming=True),
        "Parquet": Dataset.from_parquet(files, cache_dir=str(tmp_path / "b")),
        "own files": qabench.load_dataset("fanoutqa", "sample", split="validation", data_files=files),
    }
    for name, rows in copies.items():
        assert json_columns(rows) == ["answer", "decomposition"], name
        assert [loads(row["answer"]) for row in rows] == [loads(text) for text in ours["answer"]]
    info = datasets.load_dataset_builder(folder, "sample").info
    assert info.features == ours.features and info.features["answer"].id == JSON_TEXT
    assert pa.table({"answer": ['"a"']}).schema.metadata is None and json_columns(pa.table({"answer": ['"a"']})) == []


def test_rows_of_a_file_have_the_json_of_the_dataset(tmp_path: Path) -> None:
    row = dict(qabench.load_dataset("fanoutqa", "sample", split="validation")[0])
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row) + "\n")
    (read,) = qabench.load_dataset("fanoutqa", "sample", split="validation", data_files=str(file))
    assert read == row
    file.write_text(json.dumps(row) + "\n" + json.dumps(row | {"answer": "10.50"}) + "\n")
    with pytest.raises(InputError, match=r"rows.jsonl, line 2: not a row of the dataset \('10.50' is not JSON text"):
        qabench.load_dataset("fanoutqa", "sample", split="validation", data_files=str(file))


def test_damaged_metadata_says_nothing() -> None:
    for metadata in (b"", b"[]", b'{"info": {"features": []}}', b'{"info": {"features": {"a": 1}}}', b"\xff"):
        table = pa.table({"a": ['"x"']}).replace_schema_metadata({b"huggingface": metadata})
        assert json_columns(table) == [] and not is_json_text(table)
    assert not is_json_text(pd.Series(['"x"'])) and not is_json_text(['"x"'])
