"""Logs that cannot be read, or not as a whole, say the cause: none of these is damaged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.runs import any_log
from qabench.runs.sources import read_evaluations

N = 4


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log (.json) of any task of ``N`` questions, half of them right."""
    from inspect_ai import Task, task_with
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def fixed() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state.output = ModelOutput.from_content("mockllm/model", "yes")
            return state

        return solve

    samples = [Sample(id=i, input=f"{i}?", target="yes" if i % 2 else "no") for i in range(N)]
    task = task_with(Task(MemoryDataset(samples), solver=fixed(), scorer=match()), name="any")
    folder = str(tmp_path_factory.mktemp("logs"))
    (made,) = inspect_eval(task, model="mockllm/model", log_dir=folder, log_format="json", display="none")
    return Path(made.location)


def edited(log: Path, folder: Path, **fields: Any) -> Path:
    """Write the log with other fields. None removes one."""
    content: Json = json.loads(log.read_text()) | fields
    path = folder / "edited.json"
    # The order of the fields stays: a log starts with its version.
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))
    return path


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        (
            {"version": 3},
            "is of version 3 of the format of Inspect AI's logs, and the installed inspect_ai reads up to 2",
        ),
        ({"version": None}, "has no field 'version'"),
        ({"samples": None}, r"has no samples, as after .* The scores in its header: match 0\.5000 \(accuracy\)"),
    ],
)
def test_the_cause_is_said(log: Path, tmp_path: Path, fields: Json, cause: str) -> None:
    path = edited(log, tmp_path, **fields)
    with pytest.raises(InputError, match=cause) as raised:
        read_evaluations([path])
    assert "damaged" not in str(raised.value)


@pytest.mark.parametrize("name", ["a.eval", "a.json", "samples_x.jsonl", "details_x.parquet"])
def test_pointers_of_git_lfs(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    with pytest.raises(InputError, match=f"{re.escape(name)} is a Git LFS pointer.*git lfs pull"):
        read_evaluations([path])


def test_a_bug_is_not_damage(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(sample: Any) -> Any:
        raise AttributeError("a bug")

    monkeypatch.setattr(any_log, "any_record", broken)
    with pytest.raises(AttributeError, match="a bug"):
        read_evaluations([log])


def test_invalidated_samples_are_named(log: Path, tmp_path: Path) -> None:
    samples = json.loads(log.read_text())["samples"]
    provenance = {"timestamp": "2026-01-01T00:00:00+00:00", "author": "me", "reason": "a wrong target"}
    samples[1]["invalidation"] = provenance
    (evaluation,) = read_evaluations([edited(log, tmp_path, samples=samples, invalidated=True)]).evaluations
    assert "1 x invalidated in the log (a wrong target), and still in the scores (1)" in evaluation.problem_sentences()


def test_ids_that_differ_in_type_are_repeated(log: Path, tmp_path: Path) -> None:
    content = json.loads(log.read_text())
    content["samples"][2]["id"] = "1"
    content["eval"]["dataset"]["sample_ids"] = [0, 1, "1", 3]
    (evaluation,) = read_evaluations([edited(log, tmp_path, **content)]).evaluations
    assert "ids shared by several questions, of which the log has only one sample: 1 (1)" in evaluation.problems


def test_logs_of_qabench_in_json_are_scored(tmp_path: Path) -> None:
    from inspect_ai import eval as inspect_eval

    options: Json = {"task_args": {"config": "sample"}, "log_format": "json", "limit": 2}
    (made,) = inspect_eval("qabench/felm", "mockllm/model", log_dir=str(tmp_path), display="none", **options)
    for paths in ([made.location], [tmp_path]):
        (evaluation,) = read_evaluations(paths).evaluations
        assert (evaluation.benchmark, evaluation.config, len(evaluation.records)) == ("felm", "sample", 2)
