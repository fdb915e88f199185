"""Logs whose parts are too deep or whose header claims too much take no memory."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from qabench.errors import InputError
from qabench.io import limits
from qabench.io.limits import MAX_DEPTH, TooLarge, check_json_depth
from qabench.runs.sources import read_evaluations

pytestmark = pytest.mark.quick
LEVELS = 100_000


def log(path: Path, epochs: Any = 1, sample: str = "", **spec: Any) -> Path:
    """Write a log of another task with one sample, whose field "metadata" is this JSON."""
    about = {
        "task": "other", "task_id": "t", "run_id": "r", "created": "2026-01-01T00:00:00+00:00", "model": "m",
        "dataset": {"name": "d", "sample_ids": ["a", "b"]}, "config": {"epochs": epochs}, "task_args": {},
        "packages": {"inspect_ai": "0.3.285"}, "model_args": {}, "model_generate_config": {},
    } | spec  # fmt: skip
    header = {"version": 2, "status": "success", "eval": about, "plan": {"name": "plan", "steps": [], "config": {}}}
    output = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "x"}, "stop_reason": "stop"}]}
    content = {"id": "a", "epoch": 1, "input": "q", "target": "x", "messages": [], "output": output, "model_usage": {}}
    text = json.dumps(content | {"scores": {"match": {"value": "C"}}, "metadata": {}})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("samples/a_epoch_1.json", text.replace('"metadata": {}', f'"metadata": {sample or "{}"}'))
    return path


def test_deep_samples_are_refused_before_inspect_reads_them(tmp_path: Path) -> None:
    path = log(tmp_path / "deep.eval", sample='{"a":' * LEVELS + "1" + "}" * LEVELS)
    with pytest.raises(InputError, match=r"samples/a_epoch_1\.json: nested deeper than 100 levels"):
        read_evaluations([path])
    path = log(tmp_path / "header.eval", metadata=json.loads('{"a":' * 150 + "1" + "}" * 150))
    with pytest.raises(InputError, match=r"header\.json: nested deeper than 100 levels"):
        read_evaluations([path])


def test_epochs_that_only_the_header_claims_take_no_memory(tmp_path: Path) -> None:
    path = log(tmp_path / "epochs.eval", epochs=5_000_000)
    read_evaluations([path])  # imports what it needs
    tracemalloc.start()
    (evaluation,) = read_evaluations([path]).evaluations
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()
    assert evaluation.expected == 10_000_000 and [record.id for record in evaluation.records] == ["a"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", "x"), ("epochs", 1.5), ("epochs", [1]), ("task", 5), ("task", None), ("model", {}), ("task_args", [1])],
)
def test_a_header_of_other_types_is_an_error(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(InputError, match="damaged"):
        read_evaluations([log(tmp_path / "other.eval", **{name: value})])


@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 20])
def test_the_depth_of_json_ignores_brackets_in_strings(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_BYTES_PER_READ", chunk)
    strings = json.dumps({"[[" * MAX_DEPTH: ['"', "\\", '\\"[' * MAX_DEPTH, "\n"]})
    check_json_depth(BytesIO(f"[{strings}, {'[' * 98}{']' * 98}, {'[' * 99}{']' * 99}]".encode()), "x")
    with pytest.raises(TooLarge, match="x: nested deeper"):
        check_json_depth(BytesIO(f"[{strings}, {'[' * 100}{']' * 100}]".encode()), "x")
    monkeypatch.setattr(limits, "MAX_CHARACTERS", 3)
    with pytest.raises(TooLarge, match="more than 3 bytes"):
        check_json_depth(BytesIO(b"[   ]"), "x")
