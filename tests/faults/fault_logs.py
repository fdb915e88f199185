"""Damaged logs of runs: the same evaluation or an InputError."""

from __future__ import annotations

import functools
import random
import tempfile
from pathlib import Path
from typing import Any

from fault_harness import Campaign, damaged

from qabench.errors import InputError
from qabench.evaluation import Evaluation


@functools.cache
def log_file() -> tuple[bytes, Any]:
    """The log of a run on the sample, and what is read from it."""
    from inspect_ai import eval as inspect_eval
    from scripted_model import scripted

    with tempfile.TemporaryDirectory() as folder:
        model = scripted(lambda messages: "Mars, 1998 and Lima", name="damage")
        options: dict[str, Any] = {"log_dir": folder, "display": "none", "limit": 6}
        inspect_eval("qabench/fanoutqa_closed_book", model, task_args={"config": "sample"}, **options)
        (path,) = Path(folder).glob("*.eval")
        return path.read_bytes(), content(read(path))


def read(path: Path) -> Evaluation:
    from qabench.runs.log import read_run

    return read_run(path)


def content(evaluation: Evaluation) -> Any:
    return [evaluation.signatures, evaluation.model, evaluation.created, evaluation.expected, evaluation.records]


def damaged_log(chance: random.Random, folder: Path) -> str:
    whole, expected = log_file()
    path = folder / "run.eval"
    path.write_bytes(damaged(whole, chance))
    try:
        found = content(read(path))
    except InputError:
        return "InputError"
    if found != expected:
        raise AssertionError("another text, score or count")
    return "equal"


CAMPAIGNS = [Campaign("log", "damaged log of a run", "same evaluation or InputError", damaged_log)]
