"""Rows of other tools' logs of another type are an error that names file, line and field."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from qabench.errors import InputError
from qabench.io import parquet
from qabench.runs.sources import read_evaluations

pytestmark = pytest.mark.quick
LM_EVAL = {
    "doc_id": 0, "doc": {"question": "q", "kind": "k"}, "target": "t", "filtered_resps": ["a"], "filter": "none",
    "metrics": ["em"], "em": 1.0, "doc_hash": "h",
}  # fmt: skip
SHARED = {
    "evaluation_id": "e", "model_id": "m", "evaluation_name": "mod", "evaluation_result_id": "em", "sample_id": "0",
    "input": {"raw": "q", "reference": ["t"]}, "output": {"raw": ["a"]}, "evaluation": {"score": 1.0},
    "answer_attribution": [{"extracted_value": "a"}], "metadata": {"epoch": "1", "kind": "k"}, "error": None,
}  # fmt: skip
DETAIL = {
    "doc": {"id": "0", "query": "q", "choices": ["t"], "gold_index": [0], "specific": {"k": "v"}},
    "metric": {"em": 1.0}, "model_response": {"text": ["a"], "text_post_processed": None},
}  # fmt: skip
BAD = (None, True, -1, 10**400, 1.5, float("nan"), "x", "\ud800", "²", [], [None], [[1]], {}, {"a": None}, "9" * 5000)
NAME = "samples_mod_2026-01-01T00-00-00"


def write(path: Path, *rows: Any) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def changed(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the row with each field, and each field of its objects, removed or of another type."""
    for name, value in row.items():
        yield {key: each for key, each in row.items() if key != name}
        yield from ({**row, name: bad} for bad in BAD)
        if isinstance(value, dict):
            yield from ({**row, name: inner} for inner in changed(value))


@pytest.mark.parametrize("row", [LM_EVAL, SHARED], ids=["lm-eval", "every-eval-ever"])
def test_no_second_row_is_a_traceback(row: dict[str, Any], tmp_path: Path) -> None:
    errors = 0
    for other in changed(row):
        path = write(tmp_path / f"{NAME}.jsonl", row, other)
        try:
            read_evaluations([path])
        except InputError as error:
            errors += 1
            assert str(path) in str(error)
    assert errors > 20


@pytest.mark.parametrize(
    ("row", "change", "message"),
    [
        (LM_EVAL, {"metrics": None}, r"line 2, field 'metrics': Input should be a valid list, got None"),
        (LM_EVAL, {"doc": [1]}, r"line 2, field 'doc': Input should be a valid dictionary, got \[1\]"),
        (LM_EVAL, {"filter": ["x"]}, r"line 2, field 'filter': Input should be a valid string"),
        (SHARED, {"evaluation": 1}, r"line 2, field 'evaluation': Input should be"),
        (SHARED, {"answer_attribution": [1]}, r"line 2, field 'answer_attribution\[0\]': Input should be"),
        (SHARED, {"input": {"reference": 5}}, r"line 2, field 'input.reference': Input should be"),
    ],
)
def test_an_error_names_file_line_and_field(row: Any, change: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"{NAME}.jsonl", row, row | change)
    with pytest.raises(InputError, match=message):
        read_evaluations([path])


def test_no_details_of_lighteval_are_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "details_mod_2026-01-01T00-00-00.parquet"
    errors = 0
    for row in changed(DETAIL):
        try:
            write(path, row)
        except (pyarrow.ArrowException, ValueError, OverflowError):  # not a value of Parquet
            continue
        try:
            read_evaluations([path])
        except InputError as error:
            errors += 1
            assert str(path) in str(error)
    content, chance = write(path, DETAIL).read_bytes(), random.Random(0)
    for _ in range(200):
        damaged = bytearray(content)
        damaged[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            read_evaluations([path])
        except InputError:
            errors += 1
    assert errors > 20


def test_repeated_values_are_counted_before_they_expand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doc: Any = DETAIL["doc"]
    rows = [DETAIL | {"doc": doc | {"id": str(number), "choices": ["x" * 10_000] * 500}} for number in range(4)]
    path = write(tmp_path / "details_mod_2026-01-01T00-00-00.parquet", *rows)
    assert path.stat().st_size < 100_000
    assert len(read_evaluations([path]).evaluations[0].records) == 4
    monkeypatch.setattr(parquet, "MAX_BYTES", 10 << 20)
    with pytest.raises(InputError, match="expands to more than"):
        read_evaluations([path])
    monkeypatch.setattr(parquet, "MAX_ROWS", 3)
    with pytest.raises(InputError, match=r"4 rows and .* bytes, more than the 3 rows"):
        read_evaluations([path])


def test_a_result_file_of_another_type_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / f"{NAME}.jsonl", LM_EVAL)
    results = tmp_path / "results_2026-01-01T00-00-00.json"
    for content in ({"higher_is_better": None}, {"configs": {"mod": {"filter_list": 5}}}, [1]):
        results.write_text(json.dumps(content))
        with pytest.raises(InputError, match=r"results_2026-01-01T00-00-00\.json"):
            read_evaluations([path])
