"""A model has one name in the outputs of all commands."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai_server import Fault, OpenAIServer
from typer.testing import CliRunner

from qabench.benchmarks.felm import BENCHMARK as FELM
from qabench.cli import app
from qabench.errors import InputError
from qabench.evaluation.model_name import model_name
from qabench.runs import models
from qabench.runs.log import read_run
from qabench.runs.models import make_model
from qabench.runs.running import resume, start

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("model", "path", "name"),
    [
        ("openai-api/qabench/small", None, "small"),
        ("openai-api/qabench/ORG/small", None, "ORG/small"),
        ("openai-api/qabench//models/small", None, "small"),
        ("hf/ORG/small", None, "ORG/small"),
        ("hf//models/small/", None, "small"),
        ("hf/local", "/models/small/", "small"),
        ("hf/local", None, "local"),
        ("hf-inference-providers/ORG/small", None, "ORG/small"),
        ("vllm/ORG/small", None, "ORG/small"),
        ("openai/gpt-4o", None, "openai/gpt-4o"),
        ("ORG/small", None, "ORG/small"),  # in a file of lm-evaluation-harness
        ("small", None, "small"),
        ("openai-api/qabench", None, "openai-api/qabench"),
        ("", None, ""),
    ],
)
def test_the_rule(model: str, path: str | None, name: str) -> None:
    assert model_name(model, path) == name


def printed(*words: object) -> Any:
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout) if "json" in words else result.stdout


@pytest.mark.parametrize(("options", "name"), [((), "ORG/m"), (("--name", "My system"), "My system")])
def test_all_commands_have_the_same_name(
    options: tuple[str, ...], name: str, server: OpenAIServer, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    common = ("--config", "sample", "--limit", 2, "--base-url", server.base_url, "--log-dir", logs)
    document = printed("run", "fanoutqa", "--model", "ORG/m", *common, *options, "--format", "json")
    (report,) = document["evaluations"]
    assert (report["name"], report["model"]) == (name, "openai-api/qabench/ORG/m")
    printed("run", "fanoutqa", "--model", "other", *common, "--format", "json")
    log = report["path"]
    assert printed("score", log, "--format", "json")["evaluations"][0]["name"] == name
    printed("score", log, "--per-item", tmp_path / "items.jsonl")
    assert json.loads((tmp_path / "items.jsonl").read_text().splitlines()[0])["system"] == name
    compared = printed("compare", logs, "--resamples", 10, "--format", "json")
    assert {each["system"] for each in compared["comparisons"][0]["systems"]} == {name, "other"}
    ranked = printed("leaderboard", "fanoutqa", log, "--config", "sample", "--format", "json")
    assert name in {each["system"] for each in ranked}
    printed("report", logs, "--output", tmp_path / "page")
    assert name in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    exported = tmp_path / "eee"
    printed("export", log, "--format", "eee", "--output", exported)
    (document,) = (path for path in exported.rglob("*.json"))
    assert json.loads(document.read_text())["model_info"]["name"] == name


def test_a_resumed_run_keeps_its_name(server: OpenAIServer, tmp_path: Path) -> None:
    server.fault = lambda number, body: Fault(400, body={"error": {"message": "no"}}) if number == 2 else None
    options: dict[str, Any] = {"base_url": server.base_url, "log_dir": tmp_path, "cache": False, "max_retries": 0}
    log = start(FELM, FELM.settings[0], "m", limit=3, display_name="Mine", task_args={"config": "sample"}, **options)
    options.pop("cache")
    resumed = read_run(resume(log, "m", **options))
    assert (resumed.name, resumed.title.startswith("Mine on felm sample")) == ("Mine", True)


@pytest.mark.parametrize("folder", ["/no/such/folder", "./missing"])
def test_errors_of_a_local_model_name_its_folder(folder: str) -> None:
    with pytest.raises(InputError, match=rf"the model hf/local: the folder {folder} \(model_path\) does not exist"):
        make_model("hf/local", None, {"model_path": folder})


def test_an_unreadable_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no file named config.json")

    monkeypatch.setattr(models, "get_model", broken)
    monkeypatch.setattr(models, "quiet_transformers", lambda: None)
    with pytest.raises(InputError, match=f"the model hf/local in {tmp_path} cannot be used: no file named config"):
        make_model("hf/local", None, {"model_path": str(tmp_path)})
