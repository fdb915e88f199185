"""Scores for other programs: exports in the schema of Every Eval Ever, and what `--track` sends to trackers."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock, Mock

import pytest
from typer.testing import CliRunner

import qabench
from qabench.cli import app
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.evaluation import Evaluation, Message
from qabench.loading_scripts import FOLDER
from qabench.runs.export import write_shared

ANSWERS = sorted((FOLDER / "fanoutqa/sample/generations").iterdir())[0]
VALIDATOR = os.environ.get("EVERY_EVAL_EVER") or shutil.which("every_eval_ever")


@pytest.fixture(scope="module")
def run() -> Evaluation:
    """An evaluation with failures, a conversation, and counts of tokens."""
    scored = qabench.evaluate_predictions("fanoutqa", "sample", ANSWERS, lemmatizer="simplemma")
    turns = [Message(role, f"\ud800 {role}") for role in ("system", "user", "assistant", "tool", "assistant")]
    first, second, *rest = scored.records
    records = [replace(first, messages=turns, input_tokens=5, output_tokens=7, seconds=1.5)]
    records += [replace(second, status="failed", answer=None, problem="status 500"), *rest]
    arguments = {"temperature": 0.5, "max_tokens": None, "top": [1]}
    return replace(scored, model="openai/gpt x", setting="closed-book", records=records, arguments=arguments)


def test_scores_and_records_are_complete(run: Evaluation, tmp_path: Path) -> None:
    path = write_shared(run, tmp_path)
    document = json.loads(path.read_text())
    assert path.parent == tmp_path / "data/fanoutqa/openai/gpt-x" and document["model_info"]["id"] == "openai/gpt-x"
    by_name = {result["metric_config"]["metric_id"]: result for result in document["evaluation_results"]}
    assert list(by_name) == list(run.scores())
    for name, score in run.scores().items():
        details = by_name[name]["score_details"]
        bounds = details["uncertainty"]["confidence_interval"]
        assert (details["score"], bounds["lower"], bounds["upper"]) == (
            score.interval.mean,
            score.interval.low,
            score.interval.high,
        )
        assert details["details"]["signature"] == run.signatures[score.spec.group]
        assert details["details"]["questions failed"] == "1" and "simplemma" in str(by_name["acc.loose"])
    assert by_name["acc.loose"]["generation_config"]["generation_args"] == {"temperature": 0.5}
    samples = document["detailed_evaluation_results"]
    text = (tmp_path / samples["file_path"]).read_bytes()
    assert hashlib.sha256(text).hexdigest() == samples["checksum"]
    rows = [json.loads(line) for line in text.splitlines()]
    official = [score for score in run.scores().values() if score.spec.official]
    assert len(rows) == samples["total_rows"] == sum(score.n for score in official)
    assert rows[0]["interaction_type"] == "multi_turn" and len(rows[0]["messages"]) == 5
    assert rows[0]["token_usage"]["total_tokens"] == 12
    assert {row["error"] for row in rows if row["sample_id"] == run.records[1].id} == {"status 500"}


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("qabench/gpt", {}, ("gpt", None, "unknown/gpt")),
        ("hf//home/me/models/small", {}, ("small", None, "unknown/small")),
        ("hf/org/small", {}, ("small", "org", "org/small")),
        ("openai/gpt", {}, ("gpt", "openai", "openai/gpt")),
        ("qabench/gpt", {"developer": "Us"}, ("gpt", "Us", "Us/gpt")),
        ("qabench/gpt", {"developer": "Us", "model_id": "org/small"}, ("small", "Us", "org/small")),
        ("qabench/gpt", {"model_id": "org/small"}, ("small", "org", "org/small")),
    ],
)
def test_the_developer_is_stated_or_left_out(
    run: Evaluation, model: str, options: dict[str, str], expected: tuple[str, str | None, str], tmp_path: Path
) -> None:
    arguments = {"model_path": "/home/me/models/small", "base_url": "http://host/v1", "stop": ["/home/me/x y"]}
    failed = replace(run.records[1], problem="cannot read /home/me/keys.txt: refused")
    changed = replace(run, model=model, path="/home/me/a.eval", arguments=arguments, records=[failed, *run.records[2:]])
    path = write_shared(changed, tmp_path, **options)
    about = json.loads(path.read_text())["model_info"]
    assert (path.parent.name, about.get("developer"), about["id"]) == expected
    text = "".join(file.read_text() for file in tmp_path.rglob("*.json*"))
    assert "/home" not in text and "http://host/v1" in text


@pytest.mark.skipif(not VALIDATOR, reason="every_eval_ever is not installed, and EVERY_EVAL_EVER does not name it")
def test_the_validator_accepts_it(run: Evaluation, tmp_path: Path) -> None:
    write_shared(run, tmp_path)
    files = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json*")]
    done = subprocess.run([str(VALIDATOR), "validate", *files], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


def test_the_command(tmp_path: Path) -> None:
    command = ["export", str(ANSWERS), "--benchmark", "fanoutqa", "--config", "sample", "--format", "eee"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path)])
    assert done.exit_code == 0 and len(list(tmp_path.glob("data/fanoutqa/unknown/*/*.json"))) == 1
    assert "--output is required" in str(CliRunner().invoke(app, command).exception)


COMMAND = ["score", "fanoutqa", str(ANSWERS), "--config", "sample", "--lemmatizer", "simplemma", "--track"]


def check(parameters: dict[str, str], values: dict[str, float]) -> None:
    assert values["acc.loose/low"] < values["acc.loose"] < values["acc.loose/high"] and values["acc.loose/n"] == 12
    assert parameters["signature acc"].startswith("fanout_acc|") and "simplemma" in str(parameters)
    assert sum(value for name, value in values.items() if name.startswith("count/")) == 12


def test_a_run_per_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Mock()
    monkeypatch.setitem(sys.modules, "wandb", package)
    assert CliRunner().invoke(app, [*COMMAND, "wandb:mine"], catch_exceptions=False).exit_code == 0
    assert package.init.call_args.kwargs["project"] == "mine"
    check(package.init.call_args.kwargs["config"], package.log.call_args.args[0])
    package.finish.assert_called_once_with()


def test_several_systems_in_a_local_trackio(tmp_path: Path) -> None:
    pytest.importorskip("trackio", reason="needs the extra dev")
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path)}
    others = sorted(map(str, (FOLDER / "fanoutqa/sample/generations").iterdir()))[:2]
    command = ["compare", "fanoutqa", *others, *COMMAND[3:], "trackio:mine", "--json"]
    compared = subprocess.run(
        [sys.executable, "-m", "qabench", *command], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(compared.stdout)["config"] == "sample", "the tracker's messages are on standard error"
    code = """if True:
        import json, trackio
        runs = trackio.Api().runs("mine")
        rows = [(run.config, trackio.SQLiteStorage.get_logs("mine", run.name)) for run in runs]
        print(json.dumps(rows))
    """
    read = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    rows = json.loads(read.stdout.splitlines()[-1])
    assert sorted(parameters["path"] for parameters, _ in rows) == others
    for parameters, (values,) in rows:
        check(parameters, values)


def test_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    package = MagicMock()
    monkeypatch.setitem(sys.modules, "mlflow", package)
    assert CliRunner().invoke(app, [*COMMAND, "mlflow"], catch_exceptions=False).exit_code == 0
    package.set_experiment.assert_called_once_with("qabench")
    check(package.set_tags.call_args.args[0], package.log_metrics.call_args.args[0])


@pytest.mark.parametrize("error", [OSError(28, "full"), ValueError("sk-0123456789\nmore"), SystemExit(3)])
def test_a_failing_tracker_is_one_error_after_the_scores(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_API_KEY", "sk-0123456789")
    monkeypatch.setitem(sys.modules, "wandb", Mock(log=Mock(side_effect=error)))
    done = CliRunner().invoke(app, [*COMMAND, "wandb:mine"])
    assert "acc.loose" in done.stdout and isinstance(done.exception, QabenchError)
    message = str(done.exception)
    assert message.startswith("--track wandb:mine failed (") and "sk-0" not in message and "\n" not in message


def test_unknown_and_missing_trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("other", "wandb:"):
        error = CliRunner().invoke(app, [*COMMAND, wrong]).exception
        assert isinstance(error, InputError) and "allowed: trackio, wandb, mlflow" in str(error)
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert isinstance(CliRunner().invoke(app, [*COMMAND, "wandb"]).exception, MissingExtra)
