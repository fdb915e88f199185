"""FELM as a dataset: equal to its source; strict rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from qabench.data.rows import SourceRow
from qabench.errors import DataError
from qabench.loading_scripts import FOLDER, dataset_table
from qabench.loading_scripts.felm.parse import parse_row
from qabench.loading_scripts.load import load_dataset

PATH = "eval/all.jsonl"
SAMPLE = FOLDER / "felm" / "sample" / "all.jsonl"
ROWS = {"all": 847, "wk": 184, "science": 125, "math": 194, "reasoning": 208, "writing_rec": 136}


def raw_lines(path: Path) -> list[dict[str, Any]]:
    # Not splitlines, which would split at the U+0085 in a text of the real file.
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def expected(raw: dict[str, Any]) -> dict[str, Any]:
    """A raw row with the dataset's types, independent of the parser."""
    lists = {key: [] if raw[key] == "" else raw[key] for key in ("type", "ref", "ref_contents")}
    return {
        "id": raw["index"], **raw, **lists, "response": None if isinstance(raw["response"], float) else raw["response"],
    }  # fmt: skip


def raw_row(**changes: Any) -> dict[str, Any]:
    """A valid row of the domain wk with two segments and a reference, with changes."""
    return raw_lines(SAMPLE)[10] | changes


def reasoning_row(**changes: Any) -> dict[str, Any]:
    return raw_row(domain="reasoning", type="", ref="", ref_contents="") | changes


def parse(raw: dict[str, Any]) -> dict[str, Any]:
    return parse_row(SourceRow.of(raw, "felm.jsonl, line 3"))


def same(a: Any, b: Any) -> bool:
    """Equal by value, type and order of keys, with NaN equal to itself."""
    return json.dumps(a) == json.dumps(b)


@pytest.fixture(scope="module")
def path(mirror: Path) -> Path:
    return dataset_table("felm").open_path(PATH)


@pytest.mark.parametrize("config", ROWS)
def test_equals_the_source_row_by_row(config: str, path: Path, tmp_path: Path) -> None:
    dataset = load_dataset("felm", config, cache_dir=str(tmp_path))
    assert list(dataset) == ["test"]
    wanted = [expected(raw) for raw in raw_lines(path) if config in ("all", raw["domain"])]
    assert len(dataset["test"]) == len(wanted) == ROWS[config]
    for row, want in zip(dataset["test"], wanted, strict=True):
        assert same(row, want), row["index"]


@pytest.mark.parametrize(
    ("raw", "field", "says"),
    [
        (raw_row(domain="history"), "domain", "wk, science, math, reasoning, writing_rec"),
        (raw_row(response=None), "response", "string or number, got null"),
        (raw_row(response=1.5), "response", "expected a string or NaN"),
        (raw_row(labels=[True, 0]), "labels", "[1]: expected true or false, got integer 0"),
        (raw_row(labels=[True]), "labels", "each of the 2 segments, got 1"),
        (raw_row(comment=["", "", ""]), "comment", "each of the 2 segments, got 3"),
        (raw_row(type=["fooled"]), "type", "each of the 2 segments, got 1"),
        (raw_row(type=[None, "typo"]), "type", "[1]: expected one of null, '', 'knowledge_error'"),
        (raw_row(type=[[], None]), "type", "[0]: expected one of"),
        (raw_row(type=""), "type", "expected list, got string ''"),
        (raw_row(ref=[]), "ref_contents", "expected string"),
        (raw_row(ref=[], ref_contents="text"), "ref_contents", "expected one of , got 'text'"),
        (reasoning_row(type=[]), "type", "expected string, got list []"),
        (reasoning_row(type="fooled"), "type", "expected one of , got 'fooled'"),
        (raw_row(prompt="\ud800"), "prompt", "lone surrogate"),
        (raw_row(extra=1), "extra", "unknown field"),
    ],
)
def test_lossy_rows_are_rejected(raw: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(DataError, match=r"^felm\.jsonl, line 3") as error:
        parse(raw)
    assert f"{field!r}" in str(error.value) and says in str(error.value)
