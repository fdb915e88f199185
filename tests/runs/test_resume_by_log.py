"""``--resume LOG`` needs no further option for a run that was started on this machine."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai_server import Fault, OpenAIServer
from scripted_model import edited
from typer.testing import CliRunner, Result

from qabench.benchmarks import benchmark_names
from qabench.cli import app
from qabench.errors import InputError
from qabench.io.files import cache_dir
from qabench.runs.started import FOLDER
from qabench.runs.trust import NOT_STARTED_HERE, resume_command

pytestmark = pytest.mark.quick
PROBE = 1  # the first, short call of each run


def qabench(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def evaluation(result: Result) -> Any:
    assert result.exit_code == 0, (result.output, result.exception)
    (only,) = json.loads(result.stdout)["evaluations"]
    return only


def stopped_run(server: OpenAIServer, folder: Path, name: str, *options: object) -> Path:
    """Run two questions of a benchmark, of which the second fails, and return the log."""
    server.fault = lambda number, body: Fault(400, body={"error": {"message": "no"}}) if number == PROBE + 1 else None
    words = ("--model", "m", "--base-url", server.base_url, "--limit", 2, "--log-dir", folder, "--max-connections", 1)
    result = qabench("run", name, *words, "--config", "sample", "--no-cache", *options, "--format", "json")
    assert evaluation(result)["counts"]["failed"] == 1
    server.fault = lambda number, body: None
    return Path(evaluation(result)["path"])


@pytest.mark.parametrize("name", benchmark_names())
def test_the_log_is_enough(name: str, server: OpenAIServer, tmp_path: Path) -> None:
    log = stopped_run(server, tmp_path, name)
    assert resume_command(log) == f"qabench run --resume {log}"
    calls = len(server.calls)
    done = evaluation(qabench("run", "--resume", log, "--format", "json"))
    assert (done["counts"]["failed"], done["counts"]["missing"]) == (0, 0)
    assert len(server.calls) == calls + PROBE + 1

    logs = sorted(tmp_path.glob("*.eval"))
    again = qabench("run", "--resume", done["path"], "--format", "json")
    assert evaluation(again)["scores"] == done["scores"]
    assert "is complete: each question has an answer, and nothing is asked" in again.stderr
    assert len(server.calls) == calls + PROBE + 1 and sorted(tmp_path.glob("*.eval")) == logs


def test_all_options_are_in_the_log(server: OpenAIServer, tmp_path: Path) -> None:
    options = ("--scores", "acc", "--epochs", 2, "--seed", 7, "--temperature", 0.5, "--name", "Mine")
    log = stopped_run(server, tmp_path, "fanoutqa", *options, "-T", "prompt=qabench", "-T", "lemmatizer=simplemma")
    done = evaluation(qabench("run", "--resume", log, "--format", "json"))
    assert done["name"] == "Mine" and done["counts"]["answered"] == 4
    assert {score.partition(".")[0] for score in done["scores"]} == {"acc"}
    asked_again = server.calls[-1].body
    assert (asked_again["seed"], asked_again["temperature"]) == (7, 0.5)


def test_what_is_repeated_must_be_the_same(server: OpenAIServer, tmp_path: Path) -> None:
    log = stopped_run(server, tmp_path, "felm")
    for option, value, says in (
        ("--model", "other", "the model openai-api/qabench/m, not openai-api/qabench/other"),
        ("-T", "num_cons=3", "the option num_cons its default, not 3"),
        ("--epochs", 3, "the number of epochs 1, not 3"),
    ):
        error = qabench("run", "--resume", log, option, value).exception
        assert isinstance(error, InputError) and says in str(error), str(error)
        assert "All questions of a run must be asked with the same" in str(error) and NOT_STARTED_HERE not in str(error)


def test_a_server_may_have_another_address(server: OpenAIServer, tmp_path: Path) -> None:
    log = stopped_run(server, tmp_path, "felm")
    with OpenAIServer() as restarted:
        result = qabench("run", "--resume", log, "--base-url", restarted.base_url, "--format", "json")
        assert evaluation(result)["counts"]["answered"] == 2 and len(restarted.calls) == PROBE + 1
    assert f"they are from the server {server.base_url}" in result.stderr


def test_an_edited_log_is_not_enough(server: OpenAIServer, tmp_path: Path) -> None:
    log = stopped_run(server, tmp_path, "felm", "--scores", "felm")
    (tmp_path / "edited").mkdir()
    calls = len(server.calls)
    edits = {
        "server": lambda content: setattr(content.eval, "model_base_url", "http://evil.example/v1"),
        "model": lambda content: setattr(content.eval, "model", "openai-api/qabench/expensive"),
        "number of epochs": lambda content: setattr(content.eval.config, "epochs", 50),
    }
    for what, edit in edits.items():
        error = qabench("run", "--resume", edited(log, tmp_path / "edited", edit)).exception
        assert isinstance(error, InputError) and "was run with the model" in str(error), what
        assert "--model" in str(error) and len(server.calls) == calls


def test_a_log_of_another_machine(server: OpenAIServer, tmp_path: Path) -> None:
    log = stopped_run(server, tmp_path, "fanoutqa", "--scores", "acc")
    for path in (cache_dir() / FOLDER).iterdir():
        path.unlink()
    refused = qabench("run", "--resume", log)
    command = f"qabench run --resume {log} --model m --base-url {server.base_url} --scores acc"
    assert isinstance(refused.exception, InputError) and str(refused.exception).endswith(command)
    assert NOT_STARTED_HERE in str(refused.exception)  # also true if the cache was deleted
    done = evaluation(qabench(*command.split()[1:], "--format", "json"))
    assert done["counts"]["answered"] == 2


@pytest.mark.parametrize("option", ["tokenizer", "questions", "judge"])
def test_no_file_that_a_log_from_elsewhere_names_is_opened(
    option: str, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning opens the tokenizer, so the log is checked first."""
    setting = ("--setting", "open-book", "-T", "context_length=8192", "-T", "lemmatizer=simplemma")
    log = stopped_run(server, tmp_path, "fanoutqa", *setting)
    (tmp_path / "edited").mkdir()
    secret = tmp_path / "edited" / "secret"
    secret.write_text("{}")

    def edit(content: Any) -> None:
        content.eval.task_args_passed[option] = str(secret)

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("the plan was made")

    monkeypatch.setattr("qabench.runs.running.inspect_tasks", opened)
    calls, open_file = len(server.calls), Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, *rest, **more: opened() if self == secret else open_file(self, *rest, **more)
    )
    foreign = edited(log, tmp_path / "edited", edit)
    words = ("--model", "m", "--base-url", server.base_url, "-T", "context_length=8192")
    error = qabench("run", "--resume", foreign, *words).exception
    assert isinstance(error, InputError) and len(server.calls) == calls
    assert f"the option {option} {secret}" in str(error)


def test_a_killed_run_with_all_answers_gets_its_end(server: OpenAIServer, tmp_path: Path) -> None:
    words = ("--model", "m", "--base-url", server.base_url, "--limit", 2, "--log-dir", tmp_path)
    log = evaluation(qabench("run", "felm", *words, "--config", "sample", "--format", "json"))["path"]
    (tmp_path / "killed").mkdir()
    killed = edited(Path(log), tmp_path / "killed", lambda content: setattr(content, "status", "error"))
    calls = len(server.calls)
    done = evaluation(qabench("run", "--resume", killed, "--format", "json"))
    assert done["counts"]["answered"] == 2 and len(server.calls) <= calls + PROBE


def test_a_complete_log_from_elsewhere_has_no_file_opened(server: OpenAIServer, tmp_path: Path) -> None:
    words = ("--model", "m", "--base-url", server.base_url, "--limit", 2, "--log-dir", tmp_path)
    log = evaluation(qabench("run", "felm", *words, "--config", "sample", "--format", "json"))["path"]
    (tmp_path / "edited").mkdir()
    solver = tmp_path / "missing.py"
    foreign = edited(Path(log), tmp_path / "edited", lambda content: setattr(content.eval, "solver", f"{solver}@x"))
    again = qabench("run", "--resume", foreign, "--format", "json")
    assert "is complete" in again.stderr and not again.exception
