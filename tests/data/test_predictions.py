"""Files and lists of predictions: the columns that are read, and what is refused."""

import bz2
import csv
import gzip
import json
import lzma
import re
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from datasets import Dataset, DatasetDict
from typer.testing import CliRunner

import qabench
from qabench.cli import app
from qabench.data.containers import prediction_rows
from qabench.data.predictions import columns_named, parse_predictions, read_predictions
from qabench.errors import InputError

ROWS = [{"Frage": "r1", "Antwort": "the Seine", "id": "other"}, {"Frage": "r2", "Antwort": "the Nile", "id": "other"}]


def written(folder: Path) -> list[Path]:
    """The rows as JSONL, a JSON list, one line of JSONL, and CSV with semicolons."""
    lines = [json.dumps(row) for row in ROWS]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    (folder / "rows.json").write_text(json.dumps(ROWS))
    (folder / "one.jsonl").write_text(lines[0])
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(ROWS)
    return sorted(folder.iterdir())


def test_columns_are_named(tmp_path: Path) -> None:
    for path in written(tmp_path):
        with columns_named("Frage", "Antwort"):
            predictions = read_predictions(path, ("answer",))
        pairs = [(row.id, row.fields["answer"]) for row in predictions.rows]
        assert pairs == [("r1", "the Seine"), ("r2", "the Nile")][: len(pairs)] and not predictions.bad_lines, path
        with columns_named("frage", None), pytest.raises(InputError, match=r"column 'frage' \(keys: 'Frage'"):
            read_predictions(path, ("answer",))
    (row,) = read_predictions([{"id": "r1", "answer": "x", "Frage": "r2"}], ("answer",)).rows
    assert row.id == "r1"  # the names are of the block only


def test_a_named_column_replaces_other_names_of_the_answer() -> None:
    rows = [{"id": "r1", "reply": "a", "labels": [True], "mine": "b", "claims": []}]
    names = ("reply", "labels", "answer")
    for column, kept in (("mine", "answer"), ("reply", "reply"), ("labels", "labels")):
        with columns_named(None, column):
            (row,) = read_predictions(rows, (*names, "claims"), answers=names).rows
        assert row.fields[kept] == rows[0][column] and "claims" in row.fields
        assert [name for name in names if name in row.fields] == [kept]


def test_naming_a_column_that_nothing_is_read_by_is_an_error() -> None:
    with pytest.raises(InputError, match="the column 'x' has no effect: no input is"), columns_named(None, "x"):
        pass
    with pytest.raises(ValueError, match="another"), columns_named(None, "x"):
        raise ValueError("another")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"r1": "the Seine", "r2": "x", "r1": "the Nile"}', "has the id 'r1' twice; keep one of its answers"),
        (b"ARROW1\0\0", "is an Arrow file; save the rows as Parquet"),
        (b"\xff\xff\xff\xff\x10\0", "name the whole folder that Dataset.save_to_disk wrote"),
        (b"PK\x03\x04\x14\x00", "is a ZIP file, such as a spreadsheet workbook; save the table as CSV"),
    ],
)
def test_files_that_are_not_read(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_predictions(path, ("answer",))


@pytest.mark.parametrize("predictions", [5, b"x", object()])
def test_the_right_form_is_named_for_anything_else(predictions: Any) -> None:
    with pytest.raises(InputError, match=r"pass a file, a list of {.*, or a dict of id to answer"):
        qabench.evaluate_predictions("fanoutqa", "sample", predictions)


@pytest.mark.parametrize("command", ["score", "compare"])
def test_the_options_of_commands(command: str, tmp_path: Path) -> None:
    ids = qabench.load_dataset("fanoutqa", "sample", split="validation")["id"]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"no": id, "reply": f"In {number}"}) + "\n" for number, id in enumerate(ids)))
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps({"no": id, "reply": "1998"}) + "\n" for id in ids))
    files = [str(path), *([str(other)] if command == "compare" else [])]
    arguments = [command, "fanoutqa", *files, "--config", "sample", "--lemmatizer", "simplemma", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--id-column", "no", "--answer-column", "reply"])
    assert result.exit_code == 0, result.output
    assert "unreadable" not in result.stdout and "without a prediction" not in result.stdout
    assert isinstance(CliRunner().invoke(app, arguments).exception, InputError)


@pytest.mark.parametrize(
    ("field", "example"),
    [
        ("answer", '"answer": "..."'),
        ("passages", '"passages": ["..."]'),
        ("claims", '"claims": [{"claim": "...", "evidence": ["..."]}]'),
    ],
)
def test_the_form_in_messages_is_one_that_is_read(field: str, example: str) -> None:
    with pytest.raises(InputError, match=re.escape(f'{{"id": "7d...", {example}}}')):
        parse_predictions(b"", "empty.jsonl", [field])


def test_predictions_in_memory_are_no_lines_of_a_file() -> None:
    with pytest.raises(InputError, match=r'^no predictions are given. .* such as {"id": "7d...", "reply": "..."}$'):
        qabench.evaluate_predictions("felm", "sample", [])
    with pytest.raises(InputError, match=r"^none of the predictions given can be read; number 1: without 'id'"):
        qabench.evaluate_predictions("felm", "sample", [{"x": 1}])


def test_types_that_json_does_not_have_are_named() -> None:
    rows = [{"id": "1", "answer": "a"}]
    rows += [{"id": "2", "answer": value} for value in (b"x", {"x"}, date(2020, 1, 2), Decimal("1.1"))]  # type: ignore[dict-item]
    bad_lines = read_predictions(rows, ["answer"]).bad_lines
    reason = "the field 'answer' is a {}, which a JSON file cannot have; write it as a string"
    assert [line.reason for line in bad_lines] == list(map(reason.format, ("bytes", "set", "date", "Decimal")))


@pytest.mark.parametrize("end", ["", "\n", "\r\n", '"'])
def test_a_quote_that_is_never_closed_takes_no_other_rows(end: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_bytes(f'id,answer\n1,"two\nlines"\n2,"Rome\n3,Oslo{end}'.encode())
    if end == '"':
        assert [row.fields["answer"] for row in read_predictions(path, ["answer"]).rows] == [
            "two\nlines",
            "Rome\n3,Oslo",
        ]
        return
    with pytest.raises(InputError, match=r"answers.csv, line 4: a cell begins with a quote that is not closed"):
        read_predictions(path, ["answer"])


def test_two_columns_with_one_name_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    for header in ("id,answer,answer", "id,Id,answer,answer", "id,id,answer"):
        path.write_text(f"{header}\n1,a,b\n")
        with pytest.raises(InputError, match=r"has 2 columns '(id|answer)'; rename or remove all but one"):
            read_predictions(path, ["answer"])
    path.write_text("id,note,answer,note\n1,a,b,c\n")
    assert read_predictions(path, ["answer"]).rows[0].fields["answer"] == "b"
    frame = pd.DataFrame([["1", "a", "b"]], columns=["id", "answer", "answer"])
    with pytest.raises(InputError, match="a DataFrame with several columns 'answer'"):
        prediction_rows(frame, ["answer"])


def test_a_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="cannot read standard input: it is closed"):
        read_predictions("-", ["answer"])
    assert isinstance(CliRunner().invoke(app, ["score", "fanoutqa", "-", "--config", "sample"]).exception, InputError)


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [("id,answer", ","), ('"ID";"Answer"', ";"), ("question_id\tnote\tprediction", "\t"), ("sep=;\nid;answer", ";")],
)
def test_a_pipe_may_have_a_table(header: str, delimiter: str) -> None:
    row = delimiter.join(["7", *["x"] * (header.count("note")), '"a, b"'])
    predictions = parse_predictions(f"{header}\n{row}\n".encode(), "standard input", ["answer"])
    ((prediction,), bad_lines) = predictions.rows, predictions.bad_lines
    assert prediction.id == "7" and prediction.fields["answer"] == "a, b" and not bad_lines
    with columns_named("Frage", "Antwort"):
        (named,) = parse_predictions(b"Antwort,Frage\na,7\n", "/dev/fd/63", ["answer"]).rows
    assert named.id == "7" and named.fields["answer"] == "a"
    with pytest.raises(InputError, match="line 1: not JSON"):
        parse_predictions(b"id,text\n7,a\n", "standard input", ["answer"])


def test_tables_of_passages_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "passages.csv.gz"
    path.write_bytes(gzip.compress(b'id,passages\n1-1,"[""a""]"\n'))
    (row,) = qabench.benchmark("fastbook").read(path).rows
    assert row.fields["passages"] == ["a"]


@pytest.mark.parametrize(
    ("compress", "kind"),
    [(bz2.compress, "bzip2"), (lzma.compress, "xz"), (lambda data: gzip.compress(gzip.compress(data)), "gzip twice")],
)
def test_other_compressions_are_named(compress: Callable[[bytes], bytes], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(compress(b'{"id": "1", "answer": "a"}'))
    with pytest.raises(InputError, match=f"is compressed with {kind}; decompress it"):
        read_predictions(path, ["answer"])


def test_containers_of_columns_and_splits_are_named(tmp_path: Path) -> None:
    splits = DatasetDict({"test": Dataset.from_list([{"id": "1", "answer": "a"}])})
    with pytest.raises(InputError, match=r"a DatasetDict of test; pass one of them: \.\.\.\['test'\]"):
        prediction_rows(splits, ["answer"])
    with pytest.raises(InputError, match="a dict of columns; pass a frame"):
        prediction_rows(splits["test"][:], ["answer"])
    splits.save_to_disk(tmp_path / "saved")
    with pytest.raises(InputError, match="is a saved DatasetDict; name the folder of one of its splits"):
        read_predictions(tmp_path / "saved", ["answer"])
    command = ["score", "fanoutqa", str(tmp_path / "saved"), "--config", "sample"]
    assert "is a saved DatasetDict" in str(CliRunner().invoke(app, command).exception)
