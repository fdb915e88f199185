"""Folders of logs: a file that cannot be read is named, and the others are read."""

from __future__ import annotations

import json
import os
import socket
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qabench.benchmarks.felm import BENCHMARK as FELM
from qabench.cli import app
from qabench.errors import InputError
from qabench.report import build_report
from qabench.runs.sources import read_evaluations

pytestmark = pytest.mark.quick
SAMPLE = {"doc_id": 0, "doc": {"question": "q"}, "target": "t", "filtered_resps": ["a"], "filter": "none"}


def samples(path: Path) -> Path:
    rows = [SAMPLE | {"doc_id": number, "metrics": ["em"], "em": number % 2} for number in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def empty_log(path: Path, status: str = "success") -> Path:
    """Write a log of another task without samples, as a run leaves it that was stopped at once."""
    spec = {
        "task": "other", "task_id": "t", "run_id": "r", "created": "2026-01-01T00:00:00+00:00", "model": "m",
        "dataset": {"name": "d", "sample_ids": []}, "config": {}, "packages": {"inspect_ai": "0.3.285"},
    }  # fmt: skip
    header = {"version": 2, "status": status, "eval": spec, "plan": {"name": "plan", "steps": [], "config": {}}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
    return path


def test_special_files_of_a_folder_are_named(tmp_path: Path) -> None:
    good = samples(tmp_path / "samples_sums_2026-01-01T00-00-00.jsonl")
    os.mkfifo(tmp_path / "pipe.eval")
    (tmp_path / "folder.eval").mkdir()
    (tmp_path / "link.eval").symlink_to(tmp_path / "nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket has at most 107 characters
        try:
            server.bind("socket.eval")
        finally:
            os.chdir(here)
        read = read_evaluations([tmp_path])
    assert [evaluation.path for evaluation in read.evaluations] == [str(good)]
    names = ("folder.eval", "link.eval", "pipe.eval", "socket.eval")
    assert read.notes == [f"{tmp_path / name} is left out: it is not a regular file" for name in names]
    with pytest.raises(InputError, match=r"pipe\.eval is not a regular file"):
        read_evaluations([tmp_path / "pipe.eval"], FELM)


@pytest.mark.parametrize("bad", ["empty", "damaged"])
def test_one_bad_log_does_not_stop_a_folder(tmp_path: Path, bad: str) -> None:
    good = samples(tmp_path / "samples_sums_2026-01-01T00-00-00.jsonl")
    if bad == "empty":
        path = empty_log(tmp_path / "bad.eval")
    else:
        path = tmp_path / "bad.eval"
        path.write_bytes(b"PK not a log")
    read = read_evaluations([tmp_path])
    assert [evaluation.path for evaluation in read.evaluations] == [str(good)]
    (note,) = read.notes
    assert note.startswith(f"{path} is left out: ")
    for command in ("score", "report", "export"):
        options = ["-o", str(tmp_path / "out")] if command == "report" else []
        result = CliRunner().invoke(app, [command, str(tmp_path), *options])
        assert isinstance(result.exception, SystemExit | InputError | None), result.output


@pytest.mark.parametrize("command", ["report", "compare", "export", "score", "results"])
def test_commands_say_what_was_left_out_of_a_folder(tmp_path: Path, command: str) -> None:
    empty_log(tmp_path / "empty.eval")
    options = ["-o", str(tmp_path / "out")] if command == "report" else []
    result = CliRunner(env={"COLUMNS": "300"}).invoke(app, [command, str(tmp_path), *options])
    assert isinstance(result.exception, SystemExit | InputError)
    assert "empty.eval is left out: it has no samples" in f"{result.output} {result.exception}"


@pytest.mark.parametrize("command", ["report", "compare", "export", "score"])
def test_predictions_without_a_benchmark_are_explained(tmp_path: Path, command: str) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"id": "1", "answer": "a"}\n')
    options = ["-o", str(tmp_path / "out")] if command == "report" else []
    result = CliRunner(env={"COLUMNS": "300"}).invoke(app, [command, str(file), *options])
    assert isinstance(result.exception, InputError)
    assert "answers.jsonl: it is not a log, and for predictions, a benchmark must be named; allowed: " in str(
        result.exception
    )


def test_a_report_of_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to report"):
        build_report([], tmp_path)
