"""The tasks of our dataset repositories for the Hub, read and run by Inspect AI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from hub_server import TOKEN, Hub
from huggingface_hub import HfApi

from qabench.hub.build import build
from qabench.loading import builder
from qabench.loading_scripts import FOLDER, dataset_table

FILES = sorted(FOLDER.glob("*/eval.yaml"))
TASKS = [(path.parent.name, task) for path in FILES for task in yaml.safe_load(path.read_bytes())["tasks"]]
# As `inspect eval hf/...`, with a model that always gives the same answer and accepts all answers as a grader.
PROGRAM = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

def reply(messages, tools, tool_choice, config):
    text = messages[-1].text
    output = ModelOutput.from_content("mockllm/model", "GRADE: C" if "GRADE:" in text else "In 1998")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

(log,) = eval(sys.argv[1], model=get_model("mockllm/model", custom_outputs=reply), log_dir="logs", display="none")
print(json.dumps({
    "status": log.status,
    "error": str(log.error),
    "task": log.eval.task,
    "solvers": [step.solver for step in log.plan.steps],
    "scorers": [scorer.name for scorer in log.eval.scorers],
    "samples": [
        [s.input, s.target, s.metadata, s.messages[-1].text, {name: one.value for name, one in s.scores.items()}]
        for s in log.samples
    ],
}))
"""


def test_a_benchmark_without_a_hub_scorer_has_no_tasks() -> None:
    """FELM's targets are lists of labels, ExpertQA has claims to judge, fastbook's scores are those of a ranking."""
    assert [path.parent.name for path in FILES] == ["fanoutqa"]


@pytest.mark.parametrize(("name", "task"), TASKS, ids=[f"{name}-{task['id']}" for name, task in TASKS])
def test_a_task_names_what_the_dataset_has(name: str, task: dict[str, Any]) -> None:
    config = dataset_table(name).config(task["config"])
    assert task["split"] in config.splits
    features, fields = builder(name, config.name).info.features, task["field_spec"]
    for field in ("input", "target"):
        assert features[fields[field]] == datasets.Value("string")
    assert set(fields["metadata"]) <= set(features)
    assert task["id"].startswith(f"{config.name}_")


def evaluated(folder: Path, home: Path) -> Any:
    """Inspect's task for a dataset repository on a local Hub."""
    with Hub() as hub:
        api = HfApi(endpoint=hub.url, token=TOKEN)
        api.create_repo("qabench/fanoutqa", repo_type="dataset")
        api.upload_folder(repo_id="qabench/fanoutqa", repo_type="dataset", folder_path=folder)
        places = {name: str(home / name) for name in ("HF_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "hf/qabench/fanoutqa"],
            env={**os.environ, **hub.environment, **places, "HF_HUB_OFFLINE": "0"},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)


def check(log: Any, rows: Any) -> None:
    assert (log["status"], log["error"]) == ("success", "None")
    assert log["task"].startswith("hf/qabench/fanoutqa")
    assert (log["solvers"], log["scorers"]) == (["generate"], ["model_graded_qa"])
    assert len(log["samples"]) == len(rows)
    for row, (question, target, metadata, answer, scores) in zip(rows, log["samples"], strict=True):
        assert (question, target) == (row["question"], row["answer"])
        assert metadata == {"id": row["id"], "categories": row["categories"]}
        assert answer == "In 1998"
        assert scores == {"model_graded_qa": "C"}


@pytest.mark.slow
def test_inspect_runs_the_built_repository_as_it_is(mirror: Path, tmp_path: Path, online: None) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra run")
    build(tmp_path / "built", ["fanoutqa"], ["dev", "sample"])
    folder = tmp_path / "built/fanoutqa"
    check(evaluated(folder, tmp_path), datasets.load_dataset(str(folder), "dev", split="validation"))
