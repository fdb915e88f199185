"""What a run says before, while and after it waits, and how often it repeats calls."""

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import GenerateConfig
from openai_server import Fault, OpenAIServer
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.evaluation.evaluation import labels
from qabench.runs import running
from qabench.runs.log import read_run
from qabench.runs.plan import make_model, probe
from qabench.runs.running import Watch, resume, start

OPTIONS: dict[str, Any] = {"cache": False, "max_connections": 1, "task_args": {"config": "sample"}}


@pytest.fixture
def arguments(server: OpenAIServer, tmp_path: Path) -> dict[str, Any]:
    """Return the options of ``start`` and ``resume`` on the server."""
    return {"base_url": server.base_url, "log_dir": tmp_path}


def test_the_first_call_obeys_the_timeout_and_says_so(server: OpenAIServer) -> None:
    said: list[str] = []
    hold, once = threading.Event(), GenerateConfig(timeout=1, max_retries=0)
    server.fault = lambda number, body: Fault(hold=hold)
    with pytest.raises(QabenchError, match="does not answer: no reply in time"):
        probe("openai-api/qabench/m", server.base_url, None, once, None, said.append)
    hold.set()
    assert said == ["waiting for the model's first answer, up to 1 s (--timeout)"]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_call_is_repeated_as_the_option_says(retries: int, server: OpenAIServer, arguments: dict[str, Any]) -> None:
    server.fault = lambda number, body: Fault(500, body={"error": {"message": "no"}}) if number else None
    start("felm", None, "m", **arguments, **OPTIONS, limit=1, max_retries=retries)
    assert len(server.calls) == 1 + 1 + retries


def test_a_server_is_gone(server: OpenAIServer, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "BEFORE_NOTE", 0.1)
    said: list[str] = []
    server.fault = lambda number, body: Fault(503, body={}) if number in (1, 2) else None
    watch = Watch(arguments["log_dir"], say=said.append)
    start("felm", None, "m", **arguments, **OPTIONS, limit=2, max_retries=2, watch=watch)
    assert said[1:] == ["the server does not answer (HTTP 503), trying again"]


@pytest.mark.quick
def test_a_resumed_run_says_how_many_answers_it_keeps(server: OpenAIServer, arguments: dict[str, Any]) -> None:
    server.fault = lambda number, body: Fault(400, body={"error": {"message": "no"}}) if number == 2 else None
    log = start("felm", None, "m", **arguments, **OPTIONS, limit=3)
    said: list[str] = []
    watch = Watch(arguments["log_dir"], say=said.append)
    resume(log, "m", **arguments, watch=watch)
    assert said[1:] == ["2 answers are kept"] and (watch.done, watch.total) == (1, 1)


def test_runs_of_one_model_are_told_apart_by_what_differs(server: OpenAIServer, arguments: dict[str, Any]) -> None:
    run = replace(read_run(start("felm", None, "m", **arguments, **OPTIONS, limit=1, seed=1)), setting="raw")
    place = server.base_url.removeprefix("http://")
    other = replace(run, server="http://other:80/v1")
    seed = replace(run, arguments={**run.arguments, "seed": 2})
    warm = replace(seed, arguments={**seed.arguments, "temperature": 0.5})
    assert labels([run, other, replace(run, model="n")]) == [f"m · {place}", "m · other:80/v1", "n"]
    assert labels([run, seed]) == ["m · seed 1", "m · seed 2"]
    assert labels([run, warm, seed])[1] == "m · seed 2 · temperature 0.5"
    cached = replace(run, path="b.eval", created="2020-01-01T10:30:59", arguments={**run.arguments, "cache": True})
    date = run.created[:16].replace("T", " ")
    assert labels([run, cached, run]) == [f"m · {date}", "m · 2020-01-01 10:30", f"m · {date} (2)"]
    assert run.model == "openai-api/qabench/m" and run.title.startswith("m on felm sample")


def test_frequent_mistakes_with_models(server: OpenAIServer) -> None:
    server.fault = lambda number, body: Fault(404, body={"error": {"message": "no"}})
    address = server.base_url.removesuffix("/v1")
    with pytest.raises(QabenchError, match=f"the model m at {address} does not .*; most base URLs end with /v1"):
        probe("openai-api/qabench/m", address, None, GenerateConfig(timeout=5, max_retries=0))
    with pytest.raises(InputError, match=r"Add --base-url URL, or a provider: openai/gpt-4o"):
        make_model("gpt-4o")
    with pytest.raises(InputError, match=r"qabench/m was given a wrong argument with -M: .*'nope'"):
        make_model("openai-api/qabench/m", server.base_url, {"nope": 1, "api_key": "k"})


@pytest.mark.parametrize(
    ("code", "says"), [("def plain(x): ...", "missing 1 required positional argument"), ("", "is not a solver")]
)
def test_a_solver_must_be_one(code: str, says: str, arguments: dict[str, Any]) -> None:
    path = arguments["log_dir"] / "agent.py"
    path.write_text(code)
    with pytest.raises(InputError, match=r"--solver .*agent\.py@plain is not a solver or an agent") as raised:
        start("felm", None, "m", **arguments, **OPTIONS, solver=f"{path}@plain")
    assert says in str(raised.value)


def test_a_missing_package_of_a_local_model_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'qabench\[hf\]'"):
        make_model("hf/x")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("felm", "--model", "m", "--base-url", "http://h/v1"), "FELM, raw: starting with the model m at http://h/v1"),
     (("--resume", "x.eval"), "resuming x.eval")],
)  # fmt: skip
def test_a_run_is_announced_at_once(arguments: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.delitem(sys.modules, "qabench.runs.running")
    result = CliRunner().invoke(app, ["run", *arguments])
    assert isinstance(result.exception, MissingExtra) and result.stderr.startswith(says)


@pytest.mark.quick
def test_scores_of_a_log_are_selected(arguments: dict[str, Any]) -> None:
    log = start("fanoutqa", None, "m", **arguments, **OPTIONS, limit=1)

    def score(*options: str) -> Any:
        return CliRunner().invoke(app, ["score", "fanoutqa", str(log), *options])

    assert "acc.loose" in score().stdout
    shown = score("--scores", "rouge").stdout
    assert "rouge1.fscore" in shown and "acc" not in shown
    refused = score("--scores", "bleurt")
    assert refused.exit_code == 1 and "no scores: no answer has a score of bleurt" in refused.stdout
    command = ["run", "--resume", str(log), "--model", "m", "--base-url", arguments["base_url"]]
    assert "more scores" not in CliRunner().invoke(app, [*command, "--all-scores"]).stdout


@pytest.mark.quick
def test_a_wrong_grouping_is_an_error_before_scoring(tmp_path: Path) -> None:
    wrong = CliRunner().invoke(app, ["score", "fanoutqa", str(tmp_path / "absent.jsonl"), "--by", "color"])
    assert "no grouping 'color'; allowed: category, type" in str(wrong.exception)
