"""The types that mypy shows in a user's code: datasets and evaluate have types, but no py.typed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import qabench

pytest.importorskip("mypy", reason="needs the extra dev")
CODE = """
from typing import assert_type

import datasets
import evaluate

import qabench

assert_type(qabench.load_dataset("fanoutqa", "dev"), datasets.DatasetDict)
assert_type(qabench.load_dataset("fanoutqa", "dev", split="validation"), datasets.Dataset)
assert_type(qabench.load_dataset("fanoutqa", split="validation", streaming=True), datasets.IterableDataset)
assert_type(qabench.load_dataset("fanoutqa", split=["a", "b"]), list[datasets.Dataset])
assert_type(qabench.load_metric("fanout_acc"), evaluate.EvaluationModule)
qabench.load_dataset("fanoutqa", splits="dev")
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
    for file in Path(qabench.__file__).parent.iterdir():  # an editable install hides the package from mypy
        (links / file.name).symlink_to(file)
    (tmp_path / "user.py").write_text(CODE)
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    environment = os.environ | {"MYPYPATH": str(links.parent)}
    command = [sys.executable, "-m", "mypy", "user.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    errors = {line.partition(": error:")[0] for line in done.stdout.splitlines() if ": error:" in line}
    assert errors == {f"user.py:{len(CODE.splitlines())}"}, done.stdout + done.stderr  # only the wrong argument
