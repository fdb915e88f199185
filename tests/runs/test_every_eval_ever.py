"""Evaluations in the schema of Every Eval Ever: complete, without local paths, and accepted by its
validator.
"""

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import qabench
from qabench.cli import app
from qabench.evaluation import Evaluation, Message
from qabench.loading_scripts import FOLDER
from qabench.runs.every_eval_ever import write_evaluation

pytestmark = pytest.mark.quick

ANSWERS = sorted((FOLDER / "fanoutqa/sample/generations").iterdir())[0]
VALIDATOR = os.environ.get("EVERY_EVAL_EVER") or shutil.which("every_eval_ever")


@pytest.fixture(scope="module")
def run() -> Evaluation:
    """An evaluation with a failure, a conversation, and counts of tokens."""
    scored = qabench.evaluate_predictions("fanoutqa", "sample", ANSWERS, lemmatizer="simplemma")
    turns = [Message(role, f"\ud800 {role}") for role in ("system", "user", "assistant", "tool", "assistant")]
    first, second, *rest = scored.records
    records = [replace(first, messages=turns, input_tokens=5, output_tokens=7, seconds=1.5)]
    records += [replace(second, status="failed", answer=None, problem="status 500"), *rest]
    arguments = {"temperature": 0.5, "max_tokens": None, "top": [1]}
    return replace(scored, model="openai/gpt x", setting="closed-book", records=records, arguments=arguments)


def test_scores_and_records_are_complete(run: Evaluation, tmp_path: Path) -> None:
    path = write_evaluation(run, tmp_path)
    document = json.loads(path.read_text())
    assert path.parent == tmp_path / "data/fanoutqa/openai/gpt-x"
    assert document["model_info"]["id"] == "openai/gpt-x"
    results = {result["metric_config"]["metric_id"]: result for result in document["evaluation_results"]}
    assert list(results) == list(run.scores())
    for name, score in run.scores().items():
        details = results[name]["score_details"]
        bounds = details["uncertainty"]["confidence_interval"]
        assert (details["score"], bounds["lower"], bounds["upper"]) == (score.value, score.low, score.high)
        assert details["details"]["signature"] == run.signatures[score.spec.group]
        assert details["details"]["official"] == "no" and details["details"]["questions failed"] == "1"
    assert "simplemma" in results["acc.loose"]["score_details"]["details"]["deviations from the official score"]
    assert results["acc.loose"]["generation_config"]["generation_args"] == {"temperature": 0.5}
    samples = document["detailed_evaluation_results"]
    text = (tmp_path / samples["file_path"]).read_bytes()
    assert hashlib.sha256(text).hexdigest() == samples["checksum"]
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == samples["total_rows"] == sum(score.n for score in run.scores().values() if score.spec.official)
    assert rows[0]["interaction_type"] == "multi_turn" and len(rows[0]["messages"]) == 5
    assert rows[0]["token_usage"]["total_tokens"] == 12
    assert {row["error"] for row in rows if row["sample_id"] == run.records[1].id} == {"status 500"}


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("qabench/gpt", {}, ("gpt", None, "unknown/gpt")),
        ("openai-api/qabench/gpt", {}, ("gpt", None, "unknown/gpt")),
        ("openai-api/qabench/org/small", {}, ("small", "org", "org/small")),
        ("hf//home/me/models/small", {}, ("small", None, "unknown/small")),
        ("hf/org/small", {}, ("small", "org", "org/small")),
        ("openai/gpt", {}, ("gpt", "openai", "openai/gpt")),
        ("qabench/gpt", {"developer": "Us", "model_id": "org/small"}, ("small", "Us", "org/small")),
        ("qabench/gpt", {"model_id": "org/small"}, ("small", "org", "org/small")),
    ],
)  # fmt: skip
def test_the_developer_is_stated_or_left_out(
    run: Evaluation, model: str, options: dict[str, str], expected: tuple[str, str | None, str], tmp_path: Path
) -> None:
    arguments = {"model_path": "/home/me/models/small", "base_url": "http://host/v1", "stop": ["/home/me/x y"]}
    failed = replace(run.records[1], problem="cannot read /home/me/keys.txt: refused")
    changed = replace(run, model=model, path="/home/me/a.eval", arguments=arguments, records=[failed, *run.records[2:]])
    path = write_evaluation(changed, tmp_path, **options)
    about = json.loads(path.read_text())["model_info"]
    assert (path.parent.name, about.get("developer"), about["id"]) == expected
    text = "".join(file.read_text() for file in tmp_path.rglob("*.json*"))
    assert "/home" not in text and "http://host/v1" in text


def test_the_model_of_a_named_run(run: Evaluation, tmp_path: Path) -> None:
    path = write_evaluation(replace(run, model="openai-api/qabench/x", given_name="org/small"), tmp_path)
    about = json.loads(path.read_text())["model_info"]
    assert (path.parent.name, about["developer"], about["id"]) == ("small", "org", "org/small")


@pytest.mark.skipif(not VALIDATOR, reason="every_eval_ever is not installed, and EVERY_EVAL_EVER does not name it")
def test_the_validator_accepts_it(run: Evaluation, tmp_path: Path) -> None:
    write_evaluation(run, tmp_path)
    files = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json*")]
    done = subprocess.run([str(VALIDATOR), "validate", *files], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


def test_the_command(tmp_path: Path) -> None:
    command = ["export", "fanoutqa", str(ANSWERS), "--config", "sample", "--format", "eee"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path)])
    assert done.exit_code == 0 and len(list(tmp_path.glob("data/fanoutqa/unknown/*/*.json"))) == 1
    assert "--output is required" in str(CliRunner().invoke(app, command).exception)
    without_effect = CliRunner().invoke(app, ["export", str(ANSWERS), "--developer", "Us"])
    assert "--developer has no effect on --format predictions" in str(without_effect.exception)
