"""Ids of predictions, and files that do not exist or are too large."""

import csv
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from qabench.benchmarks import benchmark
from qabench.data.predictions import join, read_predictions
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
    monkeypatch.setattr("qabench.data.predictions.MOST_BYTES", 1 << 20)
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
    monkeypatch.setattr("qabench.data.predictions.MOST_LINES", 1000)
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
