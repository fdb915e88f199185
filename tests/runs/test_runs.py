"""Runs of models from start to file: the commands, logs, going on after a kill, exports, and what datasets reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("inspect_ai", reason="needs the extra run")

import datasets
from inspect_ai import eval as inspect_eval
from openai_server import Fault, OpenAIServer
from scripted_model import scripted, text

from qabench.benchmarks.fanoutqa.old_predictions import evaluate, load_questions
from qabench.cli import app
from qabench.errors import InputError, QabenchError
from qabench.evaluation import Evaluation
from qabench.generations import read_generations
from qabench.runs.export import generations, records, write_with_numbered_samples
from qabench.runs.log import read_run
from qabench.runs.scored import score_file
from qabench.text import Normalizer

QUESTIONS = 12


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        running.reply = lambda body: "Mars, 1998 and Lima.\nyes"
        yield running


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a reply of every kind."""
    replies = iter(
        [
            text("Mars: 2", "max_tokens"),
            text("I would rather not", "content_filter"),
            "",
            ConnectionError("the wire is cut"),
            "naïve: 東京 🦜",
        ]
    )
    folder = tmp_path_factory.mktemp("logs")
    model = scripted(lambda messages: next(replies, "Mars, 1998 and Lima"), name="kinds")
    (done,) = inspect_eval(
        "qabench/fanoutqa_closed_book",
        model=model,
        task_args={"config": "sample", "lemmatizer": "simplemma"},
        log_dir=str(folder),
        max_connections=1,
        display="none",
    )
    assert done.status == "success"
    return Path(done.location)


@pytest.fixture(scope="module")
def done(log: Path) -> Evaluation:
    return read_run(log)


def qabench(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "qabench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **more)


def test_every_kind_of_reply_is_a_record(done: Evaluation) -> None:
    assert (done.benchmark, done.config, done.setting, done.model) == (
        "fanoutqa",
        "sample",
        "closed-book",
        "scripted/kinds",
    )
    counts = {"answered": 8, "cut off": 1, "empty": 1, "refused": 1, "failed": 1, "missing": 0}
    assert done.counts() == counts
    by_status = {record.status: record for record in done.records}
    assert by_status["failed"].answer is None and "the wire is cut" in str(by_status["failed"].problem)
    assert by_status["refused"].answer is None and by_status["empty"].answer == ""
    assert by_status["cut off"].answer == "Mars: 2"
    answered = by_status["answered"]
    assert [message.role for message in answered.messages][-2:] == ["user", "assistant"]
    assert answered.question in answered.messages[-2].text
    assert answered.output_tokens and answered.detail.keys() == {"found", "missing"}
    assert set(answered.groups) == {"category", "evidence", "type"}
    assert done.unofficial and "acc" in done.signatures


def test_its_figures_are_those_of_the_exported_generations(done: Evaluation, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(generations(done), encoding="utf-8")
    read = read_generations(file)
    assert len(read.answers) == QUESTIONS - 2  # neither the failed one nor the refused one
    assert "naïve: 東京 🦜" in [answer.answer for answer in read.answers]
    scores = evaluate(read, load_questions("fanoutqa", "sample")).columns()
    of_run = done.scores()
    assert {name: one.interval.mean for name, one in of_run.items()} == {
        name: sum(values) / QUESTIONS for name, values in scores.items()
    }


def test_a_file_of_answers_is_a_run_with_the_same_figures(done: Evaluation, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(generations(done), encoding="utf-8")
    scored = score_file(tmp_path / "mine.jsonl", "sample", Normalizer("simplemma"))
    assert (scored.model, scored.config, scored.counts()["failed"]) == ("mine", "sample", 2)
    assert scored.scores() == done.scores()
    assert [record.detail for record in scored.records] == [record.detail for record in done.records]
    assert [record.groups for record in scored.records] == [record.groups for record in done.records]
    page = CliRunner().invoke(
        app, ["report", str(tmp_path / "mine.jsonl"), "--config", "sample", "--out", str(tmp_path)]
    )
    assert page.exit_code == 0, page.output
    assert "mine" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_its_report_is_json_data_with_groups_and_problems(done: Evaluation) -> None:
    report = json.loads(json.dumps(done.as_dict(by=["category", "type"])))
    assert report["scores"]["acc.loose"] == report["intervals"]["acc.loose"]["mean"]
    assert len(report["problems"]) == 4
    assert sum(group["records"] for group in report["by"]["type"].values()) == QUESTIONS


def test_datasets_reads_the_records_and_the_numbered_log(done: Evaluation, log: Path, tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text(records(done), encoding="utf-8")
    rows = datasets.load_dataset("json", data_files=str(tmp_path / "records.jsonl"), split="train")
    assert rows["id"] == [record.id for record in done.records]
    assert json.loads(rows[0]["scores"]) == done.records[0].scores
    zipped = pytest.importorskip("zipfile_zstd") if sys.version_info < (3, 14) else None
    assert zipped or sys.version_info >= (3, 14)
    write_with_numbered_samples(log, tmp_path / "numbered.eval")
    rows = datasets.load_dataset("eval", data_files=str(tmp_path / "numbered.eval"), split="train")
    assert [json.loads(metadata)["id"] for metadata in rows["metadata"]] == [record.id for record in done.records]


def test_run_prints_the_scores_and_where_the_log_is(server: OpenAIServer, tmp_path: Path) -> None:
    arguments = [
        "--base-url",
        server.base_url,
        "--config",
        "sample",
        "--log-dir",
        tmp_path,
        "-T",
        "lemmatizer=simplemma",
    ]
    ran = qabench("run", "fanoutqa", "--model", "m", *arguments, "--limit", "2-4", "--no-cache")
    assert ran.returncode == 0, ran.stderr
    (log,) = tmp_path.glob("*.eval")
    assert "acc.loose" in ran.stdout and "3 answered" in ran.stdout and "UNOFFICIAL" in ran.stdout
    assert str(log) in ran.stdout
    ids = load_questions("fanoutqa", "sample").by_id
    assert [record.id for record in read_run(log).records] == list(ids)[1:4]


def test_a_run_asks_by_id_and_category_with_epochs(server: OpenAIServer, tmp_path: Path) -> None:
    row = load_questions("fanoutqa", "sample").rows[3]
    arguments = ["--base-url", server.base_url, "--config", "sample", "--log-dir", tmp_path, "--no-cache", "--json"]
    ran = qabench("run", "fanoutqa", "--model", "m", *arguments, "--id", row["id"], "--epochs", 3)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["counts"]["answered"] == len(server.calls) == 3
    assert {call.body["temperature"] for call in server.calls} == {0}
    ran = qabench("run", "fanoutqa", "--model", "m", *arguments, "--category", row["categories"][0])
    wanted = [one for one in load_questions("fanoutqa", "sample").rows if row["categories"][0] in one["categories"]]
    assert json.loads(ran.stdout)["counts"]["answered"] == len(wanted)


def test_the_same_call_is_not_paid_for_twice(server: OpenAIServer, tmp_path: Path) -> None:
    arguments = ["--base-url", server.base_url, "--config", "sample", "--limit", 3, "--log-dir", tmp_path]
    environment = os.environ | {"INSPECT_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        ran = qabench("run", "fanoutqa", "--model", "m", *arguments, env=environment)
        assert ran.returncode == 0, ran.stderr
    assert len(server.calls) == 3


def test_failed_samples_are_recorded_and_asked_again(server: OpenAIServer, tmp_path: Path) -> None:
    server.fault = lambda number, body: Fault(400, body={"error": {"message": "no such luck"}}) if number < 4 else None
    arguments = ["--base-url", server.base_url, "--config", "sample", "--log-dir", tmp_path, "--no-cache", "--json"]
    ran = qabench("run", "fanoutqa", "--model", "m", *arguments, "--max-connections", 2)
    assert ran.returncode == 0, ran.stderr
    assert "UserWarning" not in ran.stderr  # one line for a person, as of every command
    first = json.loads(ran.stdout)
    assert first["counts"]["failed"] == 4 and "no such luck" in first["problems"][0]
    again = qabench("run", "--resume", first["path"], "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["counts"]["answered"] == QUESTIONS
    assert len(server.calls) == QUESTIONS + 4  # what was answered was not asked again
    assert json.loads(again.stdout)["path"] != first["path"]


@pytest.mark.slow
def test_a_run_killed_at_any_point_goes_on(server: OpenAIServer, tmp_path: Path) -> None:
    server.delay, in_flight = 0.1, 4
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "data")}
    arguments = ["--base-url", server.base_url, "--config", "sample", "--log-dir", str(tmp_path), "--no-cache"]
    command = [sys.executable, "-P", "-m", "qabench", "run", "fanoutqa", "--model", "m", *arguments, "--epochs", "5"]
    killed = 0
    running = subprocess.Popen([*command, "--max-connections", str(in_flight)], env=environment)
    for reached in (10, 30):
        while running.poll() is None and sum(call.completed for call in server.calls) < reached:
            time.sleep(0.01)
        assert running.poll() is None
        running.send_signal(signal.SIGKILL)
        running.wait()
        killed += 1
        newest = max(tmp_path.glob("*.eval"), key=lambda path: path.stat().st_mtime)
        assert read_run(newest).status == "started"
        resume = [sys.executable, "-P", "-m", "qabench", "run", "--resume", str(newest), "--json"]
        running = subprocess.Popen(
            [*resume, "--max-connections", str(in_flight)], env=environment, stdout=subprocess.PIPE
        )
    report = json.loads(running.communicate()[0])
    assert report["counts"]["answered"] == 5 * QUESTIONS and report["counts"]["missing"] == 0
    assert len(server.calls) <= 5 * QUESTIONS + killed * in_flight


def test_the_export_command_writes_all_formats(log: Path, done: Evaluation, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["export", str(log)])
    assert result.exit_code == 0 and result.stdout == generations(done)
    for name, format in (("g.jsonl", "generations"), ("r.jsonl", "records"), ("l.eval", "eval")):
        result = CliRunner().invoke(app, ["export", str(log), "--format", format, "--out", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "r.jsonl").read_text() == records(done)
    assert [record.id for record in read_run(tmp_path / "l.eval").records] == [str(n + 1) for n in range(QUESTIONS)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "give a benchmark and --model"),
        (["run", "nope", "--model", "m"], "unknown benchmark 'nope'; allowed: fanoutqa"),
        (["run", "felm", "--model", "m", "--setting", "rag"], "felm has no setting 'rag'; allowed: raw"),
        (["run", "fanoutqa", "--model", "m", "--limit", "a"], "--limit is 'a'"),
        (["run", "fanoutqa", "--model", "m", "-T", "x"], "-T is 'x'; it must be NAME=VALUE"),
        (["run", "fanoutqa", "--model", "none/x", "--config", "nope"], "nope"),
        (["run", "fanoutqa", "--model", "no-such-provider/x", "--config", "sample"], "no-such-provider"),
        (["run", "fanoutqa", "--resume", "x.eval"], "give no benchmark"),
        (["run", "--resume", "x.eval"], "there is no log x.eval"),
        (["export", "x.eval"], "there is no log x.eval"),
        (["report", "x.eval", "--config", "dev", "--out", "x"], "a log names its own config"),
    ],
)
def test_wrong_usage_says_what_is_allowed(arguments: list[str], says: str, tmp_path: Path) -> None:
    where = ["--log-dir", str(tmp_path)] if arguments[0] == "run" else []
    result = CliRunner().invoke(app, [*arguments, *where])
    assert isinstance(result.exception, InputError), result.output
    assert says in str(result.exception)


def test_what_is_no_log_of_ours_is_refused(tmp_path: Path, done: Evaluation) -> None:
    (tmp_path / "a.eval").write_bytes(b"no zip")
    with pytest.raises(InputError, match="not a log of Inspect AI, or is damaged"):
        read_run(tmp_path / "a.eval")
    with pytest.raises(InputError, match="no answers of epoch 7; it has the epochs 1"):
        generations(done, epoch=7)
    assert issubclass(InputError, QabenchError)
