"""What a run says before, while and after it waits, and how often it repeats calls."""

import json
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.model._model import init_active_model
from openai_server import Fault, OpenAIServer, completion
from typer.testing import CliRunner

from qabench.benchmarks.fanoutqa import BENCHMARK as FANOUTQA
from qabench.benchmarks.felm import BENCHMARK as FELM
from qabench.cli import app
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.evaluation.labels import labels
from qabench.runs import models, watching
from qabench.runs.inspect_logs import read_samples_by_inspect
from qabench.runs.log import other_models, read_run
from qabench.runs.log_types import Sample
from qabench.runs.models import make_model, probe
from qabench.runs.plain import read_plain_header, read_plain_samples
from qabench.runs.running import resume, start
from qabench.runs.watching import Watch

OPTIONS: dict[str, Any] = {"cache": False, "max_connections": 1, "task_args": {"config": "sample"}}


def both_readers(log: Path) -> Iterator[list[Sample]]:
    header = read_plain_header(log)
    yield list(read_plain_samples(log, header.positions, 1))
    yield read_samples_by_inspect(log, header.status)[1]


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


@pytest.mark.parametrize(
    ("name", "sentences"), [("m", []), ("", []), ("other-7b", ["the server calls the model other-7b in its reply"])]
)
def test_another_name_in_the_first_reply_is_said(name: str, sentences: list[str], server: OpenAIServer) -> None:
    said: list[str] = []
    server.fault = lambda number, body: Fault(200, body=completion("ready", name))
    probe("openai-api/qabench/m", server.base_url, None, None, None, said.append)
    assert said == sentences


@pytest.mark.quick
@pytest.mark.parametrize("name", ["org/m", "m", "other-7b"])
def test_another_model_in_later_replies_is_noted(name: str, server: OpenAIServer, arguments: dict[str, Any]) -> None:
    server.fault = lambda number, body: Fault(body=completion("1", name)) if number == 2 else None
    log = start(FELM, FELM.settings[0], "org/m", **arguments, **OPTIONS, limit=3)
    again = CliRunner().invoke(app, ["score", "felm", str(log)])
    note = "the server calls the model other-7b in 1 of 3 replies, not org/m: one of the two names may be an alias"
    assert (note in " ".join(again.output.split())) == (name == "other-7b")
    # The plain reader and Inspect's classes read the same name.
    assert [len(other_models("openai-api/x/org/m", samples)) for samples in both_readers(log)] == [
        name == "other-7b"
    ] * 2


@pytest.mark.parametrize("retries", [0, 1])
def test_a_call_is_repeated_as_the_option_says(retries: int, server: OpenAIServer, arguments: dict[str, Any]) -> None:
    server.fault = lambda number, body: Fault(500, body={"error": {"message": "no"}}) if number else None
    start(FELM, FELM.settings[0], "m", **arguments, **OPTIONS, limit=1, max_retries=retries)
    assert len(server.calls) == 1 + 1 + retries


def test_a_server_is_gone(server: OpenAIServer, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BEFORE_NOTE", 0.1)
    said: list[str] = []
    server.fault = lambda number, body: Fault(503, body={}) if number in (1, 2) else None
    watch = Watch(arguments["log_dir"], say=said.append)
    start(FELM, FELM.settings[0], "m", **arguments, **OPTIONS, limit=2, max_retries=2, watch=watch)
    assert said == ["the server does not answer (HTTP 503), trying again"]


@pytest.mark.quick
def test_a_resumed_run_says_how_many_answers_it_keeps(server: OpenAIServer, arguments: dict[str, Any]) -> None:
    server.fault = lambda number, body: Fault(400, body={"error": {"message": "no"}}) if number == 2 else None
    log = start(FELM, FELM.settings[0], "m", **arguments, **OPTIONS, limit=3)
    said: list[str] = []
    watch = Watch(arguments["log_dir"], say=said.append)
    resume(log, "m", **arguments, watch=watch)
    assert said == ["2 answers are kept"] and (watch.done, watch.total) == (1, 1)


def test_a_wrong_name_is_an_error_without_a_word_about_waiting(server: OpenAIServer) -> None:
    said: list[str] = []
    server.models = Fault(body={"data": [{"id": "small"}]})
    server.fault = lambda number, body: Fault(404, body={"error": {"message": "no such model"}})
    with pytest.raises(QabenchError, match="no such model; models there: small"):
        probe("openai-api/qabench/m", server.base_url, None, None, None, said.append)
    assert said == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_dead_port_is_an_error_before_any_call(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def called(*_: Any, **__: Any) -> None:
        raise AssertionError("the model was called")

    monkeypatch.setattr(models, "make_model", called)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]  # nobody listens
        with pytest.raises(QabenchError, match=r"does not answer: .*nothing listens there; start the server"):
            probe("openai-api/qabench/m", f"http://{host}:{port}/v1")


@pytest.mark.quick
def test_a_run_stops_at_its_cost(server: OpenAIServer, arguments: dict[str, Any]) -> None:
    words = ["run", "felm", "--model", "m", "--base-url", server.base_url, "--log-dir", str(arguments["log_dir"])]
    words += ["--config", "sample", "--no-cache", "--max-connections", "1", "--max-cost", "0.000001"]
    refused = CliRunner().invoke(app, words)
    assert "--max-cost needs --price-in and --price-out" in str(refused.exception)
    stopped = CliRunner().invoke(app, [*words, "--price-in", "1", "--price-out", "2"])
    assert "the limit of the cost, 1e-06 (--max-cost), is reached" in str(stopped.exception)
    assert len(server.calls) <= 3  # the first, short one, and those that were in flight
    prices = CliRunner().invoke(app, ["run", "felm", "--model", "m", "--price-in", "1", "--price-out", "2"])
    assert "for --dry-run, which estimates the cost, and for --max-cost" in str(prices.exception)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["fanoutqa", "felm", "fastbook", "expertqa"])
def test_a_run_is_not_scored_twice_in_its_process(
    name: str, server: OpenAIServer, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", name, "--model", "m", "--base-url", server.base_url, "--config", "sample", "--limit", "2"]
    words += ["--log-dir", str(arguments["log_dir"]), "--format", "json"]

    def scored_again(*_: Any, **__: Any) -> Any:
        raise AssertionError("the answers were scored again")

    with monkeypatch.context() as patched:
        patched.setattr("qabench.runs.log.rescored", scored_again)
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.exception
    again = CliRunner().invoke(app, ["score", str(arguments["log_dir"]), "--format", "json"])
    assert json.loads(again.stdout) == json.loads(done.stdout)


def test_runs_of_one_model_are_told_apart_by_what_differs(server: OpenAIServer, arguments: dict[str, Any]) -> None:
    run = replace(read_run(start(FELM, FELM.settings[0], "m", **arguments, **OPTIONS, limit=1, seed=1)), setting="raw")
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
    wrong = r"qabench/m was given a wrong argument with -M: 'time_out' \(did you mean 'timeout'\?\); allowed: .*api_key"
    with pytest.raises(InputError, match=wrong):
        make_model("openai-api/qabench/m", server.base_url, {"time_out": 1, "api_key": "k"})
    with pytest.raises(InputError, match=r"no provider 'opnai' \(did you mean 'openai'\?\); allowed: .*hf"):
        make_model("opnai/gpt-4o")


@pytest.mark.parametrize(
    ("code", "says"), [("def plain(x): ...", "missing 1 required positional argument"), ("", "is not a solver")]
)
def test_a_solver_must_be_one(code: str, says: str, arguments: dict[str, Any]) -> None:
    path = arguments["log_dir"] / "agent.py"
    path.write_text(code)
    with pytest.raises(InputError, match=r"--solver .*agent\.py@plain is not a solver or an agent") as raised:
        start(FELM, FELM.settings[0], "m", **arguments, **OPTIONS, solver=f"{path}@plain")
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
    # Not ``watching``: imported twice, it would register its hooks twice.
    monkeypatch.delitem(sys.modules, "qabench.runs.running")
    result = CliRunner().invoke(app, ["run", *arguments])
    assert isinstance(result.exception, MissingExtra) and result.stderr.startswith(says)


@pytest.mark.quick
def test_scores_of_a_log_are_selected(arguments: dict[str, Any]) -> None:
    log = start(FANOUTQA, FANOUTQA.settings[0], "m", **arguments, **OPTIONS, limit=1)

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


@pytest.mark.quick
@pytest.mark.parametrize("number", [0, 1])
def test_an_unusable_reply_is_not_called_a_status(number: int, server: OpenAIServer, arguments: dict[str, Any]) -> None:
    """A proxy's page with the status 200, instead of an answer."""
    page = Fault(200, {"Content-Type": "text/html"}, "<!DOCTYPE html><html>Sign in</html>")
    server.fault = lambda call, body: page if call >= number else None
    if number == 0:
        with pytest.raises(QabenchError, match="does not answer: the reply is not a JSON object: '<!DOCTYPE html>"):
            start(FELM, FELM.settings[0], "m", **arguments, **OPTIONS, limit=1)
    else:
        log = start(FELM, FELM.settings[0], "m", **arguments, **OPTIONS, limit=1)
        (record,) = read_run(log).records
        assert record.problem == "the reply is not a JSON object: '<!DOCTYPE html><html>Sign in</html>'"


@pytest.mark.quick
def test_a_header_does_not_make_a_failure_ours(server: OpenAIServer, arguments: dict[str, Any]) -> None:
    rejected = Fault(400, {"x-qabench": "unusable reply"}, {"error": {"message": "the reply is not a JSON object"}})
    server.fault = lambda call, body: rejected if call else None
    log = start(FELM, FELM.settings[0], "m", **arguments, **OPTIONS, limit=1)
    (record,) = read_run(log).records
    assert record.problem == "HTTP 400: the reply is not a JSON object"


@pytest.mark.quick
@pytest.mark.parametrize("setting", ["open-book", "evidence-provided"])
def test_an_unknown_window_is_found_before_a_call(setting: str, server: OpenAIServer, tmp_path: Path) -> None:
    # Inspect keeps the model of an earlier run in this process.
    init_active_model(get_model("mockllm/earlier"), GenerateConfig())
    words = [
        "run",
        "fanoutqa",
        "--setting",
        setting,
        "--config",
        "sample",
        "--model",
        "small",
        "--log-dir",
        str(tmp_path),
    ]
    address = ["--base-url", server.base_url]
    for more, named in ((address, "openai-api/qabench/small"), ([*address, "--dry-run"], "small")):
        error = CliRunner().invoke(app, [*words, *more]).exception
        assert isinstance(error, InputError) and not server.calls
        assert str(error).startswith(f"the context window of {named} is not known")
        assert "-T context_length=8192" in str(error)
    task_args = ["-T", "context_length=8192", "-T", "tokenizer=/no/such/folder"]
    for more in (address, [*address, "--dry-run"]):
        error = CliRunner().invoke(app, [*words, *more, *task_args]).exception
        assert isinstance(error, InputError) and not server.calls
        assert str(error).startswith("the tokenizer '/no/such/folder' cannot be read")


@pytest.mark.quick
def test_a_model_that_rejects_tools_is_asked_as_it_should(server: OpenAIServer, tmp_path: Path) -> None:
    """It gets the prompt for searching by text, which its scores are signed with."""
    rejected = Fault(400, body={"error": {"message": "tools are not supported by this model"}})
    server.fault = lambda number, body: rejected if body.get("tools") else None
    words = ("fanoutqa", "--setting", "open-book", "--config", "sample", "--limit", "1", "--model", "m")
    more = ("--base-url", server.base_url, "--log-dir", str(tmp_path), "-T", "context_length=8192", "--format", "json")
    result = CliRunner().invoke(app, ["run", *words, *more, "-T", "lemmatizer=simplemma"])
    assert result.exit_code == 0, result.exception
    (evaluation,) = json.loads(result.stdout)["evaluations"]
    assert evaluation["counts"]["answered"] == 1 and "search:text" in result.stdout
    assert "were not asked with the setting's text" not in result.stdout
