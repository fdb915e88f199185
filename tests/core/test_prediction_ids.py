"""Ids of predictions, and files that do not exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qabench.data.predictions import read_predictions
from qabench.errors import InputError
from qabench.runs.sources import read_evaluations


def test_an_integer_is_an_id(tmp_path: Path) -> None:
    # The ids of expertqa's lfqa configs are integers in the dataset.
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": 1, "answer": "a"}\n{"id": "2", "answer": "b"}\n')
    assert [row.id for row in read_predictions(file, ["answer"]).rows] == ["1", "2"]


@pytest.mark.parametrize("identity", [None, True, 1.0, ["1"], {}])
def test_other_ids_are_bad_lines(identity: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": "1", "answer": "a"}\n' + json.dumps({"id": identity, "answer": "b"}))
    found = read_predictions(file, ["answer"])
    assert [row.id for row in found.rows] == ["1"]
    assert [line.reason for line in found.bad_lines] == [f"the id is neither a string nor an integer: {identity!r}"]


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nothing: No such file or directory"):
        read_evaluations([tmp_path / "nothing"])
