"""Ids of predictions, and files that do not exist or are too large."""

import csv
import gzip
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import qabench
from qabench.benchmarks import benchmark, benchmark_names
from qabench.data.joining import by_system, join, mixed_systems
from qabench.data.predictions import read_predictions
from qabench.errors import InputError


@pytest.mark.parametrize("identity", [None, True, 1.0, ["1"], {}])
def test_ids_are_strings_or_integers(identity: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"  # the ids of expertqa's lfqa configs are integers in the dataset
    rows = [{"id": id, "answer": "a"} for id in (1, "2", identity)]
    file.write_text("\n".join(map(json.dumps, rows)))
    found = read_predictions(file, ["answer"])
    assert [row.id for row in found.rows] == ["1", "2"]
    assert [line.reason for line in found.bad_lines] == [f"the id is neither a string nor an integer: {identity!r}"]


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_tables_have_predictions(suffix: str, delimiter: str, tmp_path: Path) -> None:
    file = tmp_path / f"a{suffix}"
    file.write_text('\ufeffid,answer\r\n007,"two\nlines"\r\n8,\r\n9\r\n'.replace(",", delimiter), encoding="utf-8")
    rows = [(row.line, row.id, row.fields["answer"]) for row in read_predictions(file, ["answer"]).rows]
    assert rows == [(3, "007", "two\nlines"), (4, "8", ""), (5, "9", None)]
    long = "x" * 200_000  # more than csv's own limit
    file.write_text(f"id{delimiter}answer\n1{delimiter}{long}")
    limit = csv.field_size_limit()
    assert read_predictions(file, ["answer"]).rows[0].fields["answer"] == long
    assert csv.field_size_limit() == limit  # it is the limit of the whole process
    (fastbook,) = benchmark("fastbook").read(file).rows
    assert fastbook.fields["answer"] == long
    file.write_text('{"id": "1", "answer": "a"}')  # a file of ours, with any name
    assert read_predictions(file, ["answer"]).rows[0].fields == {"id": "1", "answer": "a"}
    for content, problem in (
        (f"id{delimiter}answer\n1{delimiter}Paris{delimiter} France", "line 2 has more cells than the header"),
        (f"id{delimiter}answer\n1{delimiter}Zürich", "utf-8"),
        ("number\n1", "the header must have id and answer"),
    ):
        file.write_bytes(content.encode("latin-1"))
        with pytest.raises(InputError, match=problem):
            read_predictions(file, ["answer"])


@pytest.mark.parametrize(("name", "field"), [("felm", "index"), ("expertqa", "example_id")])
def test_files_may_use_the_datasets_name_of_the_id(name: str, field: str) -> None:
    rows = [{field: 7, "answer": "a"}, {"id": "8", field: 9, "answer": "b"}, {"answer": "c"}]
    predictions = benchmark(name).read(rows)
    assert [row.id for row in predictions.rows] == ["7", "8"]
    assert predictions.bad_lines[0].reason == f"without 'id' or '{field}' (keys: 'answer')"


class Endless(io.RawIOBase):
    """A pipe that never ends, as of ``yes``."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        buffer[:] = (b"y\n" * len(buffer))[: len(buffer)]
        return len(buffer)


def test_endless_input_and_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.data.prediction_files.MAX_BYTES", 1 << 20)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    with pytest.raises(InputError, match="standard input has more than 1 MiB, which is the limit"):
        read_predictions("-")
    bomb = tmp_path / "bomb.jsonl.gz"
    bomb.write_bytes(gzip.compress(b" " * (1 << 22)))
    with pytest.raises(InputError, match=r"bomb.jsonl.gz has more than 1 MiB, which is the limit"):
        read_predictions(bomb)
    lines = tmp_path / "lines.jsonl"
    lines.write_bytes(b"y\n" * 500_000)
    monkeypatch.undo()
    monkeypatch.setattr("qabench.data.prediction_files.MAX_LINES", 1000)
    with pytest.raises(InputError, match=r"lines.jsonl has more than 1,000 lines"):
        read_predictions(lines)


def test_excerpts_of_bad_lines_are_short(tmp_path: Path) -> None:
    file, long = tmp_path / "a.jsonl", "k" * 1_000_000
    file.write_text(json.dumps({long: 1}) + "\n" + json.dumps({"id": long, "answer": "a"}))
    predictions = read_predictions(file, ["answer"])
    assert len(predictions.bad_lines[0].reason) < 300
    with pytest.raises(InputError, match="none of the 1 predictions") as caught:
        join(["1"], predictions)
    assert len(str(caught.value)) < 500
    file.write_text(file.read_text() + '\n{"id": "1", "answer": "a"}')
    assert len("".join(join(["1"], read_predictions(file, ["answer"])).problems)) < 1000


ANSWERS = [{"id": "1", "answer": "Süd; Nord"}, {"id": "2", "answer": "two\nlines"}]


def written(folder: Path, kind: str, ids: Sequence[str] = ("1", "2")) -> Path:
    """The same answers as people hand them over."""
    from datasets import Dataset

    answers = [{"id": id, "answer": row["answer"]} for id, row in zip(ids, ANSWERS, strict=True)]

    if kind == "parquet":
        Dataset.from_list(answers).to_parquet(folder / "a.parquet")
        return folder / "a.parquet"
    if kind == "saved dataset":
        Dataset.from_list(answers).save_to_disk(folder / "a")
        return folder / "a"
    if kind == "by id":
        text, name, encoding = json.dumps({row["id"]: row["answer"] for row in answers}, indent=1), "a.json", "utf-8"
    elif kind == "objects by id":
        text, name, encoding = json.dumps({row["id"]: {"answer": row["answer"]} for row in answers}), "a.json", "utf-8"
    elif kind == "other names":
        rows = [{"question_id": row["id"], "prediction": row["answer"]} for row in answers]
        text, name, encoding = "\n".join(map(json.dumps, rows)), "a.jsonl", "utf-8"
    else:
        header, delimiter, encoding, name = {
            "semicolons": ("ID;Answer", ";", "utf-8-sig", "a.csv"),
            "tabs and UTF-16": ("ID\tanswer", "\t", "utf-16", "a.csv"),
            "sep=": ("sep=;\nid;answer", ";", "utf-8", "a.csv"),
        }[kind]
        text = f"{header}\r\n" + "".join(f'{row["id"]}{delimiter}"{row["answer"]}"\r\n' for row in answers)
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


KINDS = ["parquet", "saved dataset", "by id", "objects by id", "other names", "semicolons", "tabs and UTF-16", "sep="]


# For fastbook, whose first field is not the answer, an answer must have its name.
READERS = [(reader, kind) for reader in ("read_predictions", "fanoutqa") for kind in KINDS]
READERS += [("fastbook", kind) for kind in KINDS if kind not in ("by id", "other names")]


@pytest.mark.parametrize(("reader", "kind"), READERS)
def test_files_of_other_tools_have_the_same_predictions(reader: str, kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, kind)
    is_benchmark = reader in benchmark_names()
    predictions = benchmark(reader).read(path) if is_benchmark else read_predictions(path, ["answer"])
    assert [{name: row.fields[name] for name in ("id", "answer")} for row in predictions.rows] == ANSWERS
    assert not predictions.bad_lines


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_predictions_reads_files_of_other_tools(kind: str, tmp_path: Path) -> None:
    ids = qabench.load_dataset("fanoutqa", "sample", split="validation")["id"][:2]
    path = written(tmp_path, kind, ids)
    evaluation = qabench.evaluate_predictions("fanoutqa", "sample", path, scores=["acc"], lemmatizer="simplemma")
    answered = [record for record in evaluation.records if record.answer]
    assert [(record.id, record.answer) for record in answered] == [
        (id, row["answer"]) for id, row in zip(ids, ANSWERS, strict=True)
    ]


def test_an_object_with_a_field_of_a_prediction_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"answer": "Paris"}')
    with pytest.raises(InputError, match=r"line 1: without 'id' .keys: 'answer'"):
        read_predictions(file, ["answer"])


def test_own_names_are_preferred_to_those_of_other_tools() -> None:
    (row,) = read_predictions([{"id": "1", "question_id": "9", "answer": "a", "prediction": "b"}], ["answer"]).rows
    assert row.id == "1" and row.fields["answer"] == "a" and row.fields["prediction"] == "b"


def test_a_damaged_parquet_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"cannot read .*a\.parquet: "):
        read_predictions(tmp_path / "a.parquet", ["answer"])


def test_parquet_is_bounded_before_it_expands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import Dataset

    path = tmp_path / "a.parquet"
    Dataset.from_list([{"id": str(number), "answer": "x" * 100_000} for number in range(40)]).to_parquet(path)
    assert path.stat().st_size < 100_000 and len(read_predictions(path, ["answer"]).rows) == 40
    monkeypatch.setattr("qabench.io.parquet.MAX_BYTES", 1_000_000)
    with pytest.raises(InputError, match=r"a\.parquet expands to more than"):
        read_predictions(path, ["answer"])


def test_systems_on_different_questions_are_named() -> None:
    ids = [question.id for question in benchmark("felm").load("sample").rows]
    rows = [{"id": id, "reply": "ALL_CORRECT", "system": "AB"[position % 2]} for position, id in enumerate(ids)]
    note = "lines of 2 systems are scored as one, because no question has several: A, B"
    assert qabench.evaluate_predictions("felm", "sample", rows).notes == [note]
    # One question with several systems tells them apart.
    read = benchmark("felm").read([*rows, rows[0] | {"system": "B"}])
    assert not mixed_systems(read) and list(by_system(read)) == ["A", "B"]
    assert not mixed_systems(benchmark("felm").read([row | {"system": "A"} for row in rows]))
