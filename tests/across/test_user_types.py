"""The types that mypy shows in a user's code: datasets and evaluate have types, but no py.typed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import qabench
from qabench import loading_scripts, metrics, retrieval

pytest.importorskip("mypy", reason="needs the extra dev")
CODE = """
from collections.abc import Mapping
from typing import Any, assert_type
from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict, NamedSplit, ReadInstruction
from evaluate import EvaluationModule
from qabench import load_dataset, load_metric, run

def of_dict(question: str, row: dict[str, Any]) -> str:
    return question

async def of_mapping(question: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {"answer": question}

def of_number(question: int, row: dict[str, Any]) -> str:
    return ""

def check(split: str | None, streaming: bool, read: ReadInstruction) -> None:
    assert_type(load_dataset("felm"), DatasetDict)
    assert_type(load_dataset("felm", "sample", split="test", num_proc=2), Dataset)
    assert_type(load_dataset("felm", split=NamedSplit("test")), Dataset)
    assert_type(load_dataset("felm", split=split), Dataset | DatasetDict)
    load_dataset("felm", split=split, streaming=streaming)
    assert_type(load_metric("fanout_acc"), EvaluationModule)
    run("fanoutqa", "sample", of_dict)
    run("fanoutqa", "sample", of_mapping)
    run("fanoutqa", "sample", of_number)  # wrong
    load_dataset("felm", split=1)  # wrong
    load_dataset("felm", splits="test")  # wrong
"""
SETTINGS = """
[mypy]
[mypy-datasets.*,evaluate.*]
follow_untyped_imports = True
[mypy-qabench.*]
ignore_errors = True
"""


@pytest.mark.slow
def test_what_mypy_sees(tmp_path: Path) -> None:
    links = tmp_path / "links" / "qabench"
    links.mkdir(parents=True)
    # an editable install hides the package from mypy
    for file in Path(qabench.__file__).parent.iterdir():
        (links / file.name).symlink_to(file)
    for package in (loading_scripts, metrics, retrieval):  # their folders are at the root of a checkout
        link = links / package.__name__.rpartition(".")[2]
        if not link.exists():
            link.symlink_to(Path(next(iter(package.__path__))))
    (tmp_path / "user.py").write_text(CODE)
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    environment = os.environ | {"MYPYPATH": str(links.parent)}
    # datasets and evaluate do not export their names as --strict asks for.
    command = [sys.executable, "-m", "mypy", "--strict", "--implicit-reexport", "user.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    errors = {line.partition(": error:")[0] for line in done.stdout.splitlines() if ": error:" in line}
    wrong = {f"user.py:{n}" for n, line in enumerate(CODE.splitlines(), start=1) if line.endswith("# wrong")}
    assert errors == wrong and len(wrong) == 3, done.stdout + done.stderr
