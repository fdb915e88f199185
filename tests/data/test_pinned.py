"""Rows of a dataset on the Hub: columns, ids, digests, the mirror, and errors."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabench.benchmarks import benchmark
from qabench.data.pinned import HubDataset
from qabench.data.sources import fetch, find_local, local_path
from qabench.errors import DataError, DigestMismatch, InputError, QabenchError, SourceUnavailable
from qabench.evaluation.signature import deviations
from qabench.loading_scripts.builder import rows_builder

ROWS: list[dict[str, Any]] = [{"q": "Who?", "a": ["x"], "n": 1}, {"q": "Where?", "a": None, "n": 1}]
ASKED = HubDataset("org/name", question="q", answer="a")


def on_the_hub(patch: pytest.MonkeyPatch, rows: list[dict[str, Any]]) -> None:
    patch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.Dataset.from_list(rows))


def test_columns_are_renamed_and_ids_are_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = [ROWS[0], ROWS[1] | {"a": ["y"]}, ROWS[0]]
    on_the_hub(monkeypatch, answered)
    rows = list(ASKED.rows())
    assert [list(row) for row in rows] == [["id", "question", "answer", "n"]] * 3
    assert [rows[0]["question"], rows[0]["answer"], rows[2]["id"]] == ["Who?", ["x"], f"{rows[0]['id']}-2"]
    on_the_hub(monkeypatch, answered[1::-1])
    assert [row["id"] for row in ASKED.rows()] == [rows[1]["id"], rows[0]["id"]]
    assert next(replace(ASKED, id="n", columns=()).rows()) == {"id": "1", "question": "Where?", "answer": ["y"]}


@pytest.mark.parametrize(
    ("dataset", "rows", "error", "says"),
    [
        (HubDataset("org/name"), ROWS, InputError, "no column 'question'.*allowed: q, a, n"),
        (replace(ASKED, columns=("m",)), ROWS, InputError, "no column 'm'"),
        (ASKED, ROWS, DataError, "row 1: .*'a' is null"),
        (replace(ASKED, id="n"), [ROWS[0]] * 2, DataError, "row 1: the id '1' is repeated"),
        (replace(ASKED, question="n"), ROWS, DataError, "row 0: the column 'n' is not text, or"),
        (ASKED, [ROWS[0] | {"n": b"x"}], DataError, "row 0: .*bytes.*columns="),
    ],
)
def test_errors_name_the_place(
    monkeypatch: pytest.MonkeyPatch, dataset: HubDataset, rows: list[dict[str, Any]], error: type[Exception], says: str
) -> None:
    on_the_hub(monkeypatch, rows)
    with pytest.raises(error, match=says):
        list(dataset.rows())


def nested(depth: int) -> pa.Table:
    answer: Any = "a"
    for _ in range(depth):
        answer = [answer]
    return pa.table({"question": ["q"], "answer": [answer]})


GOOD = pa.table({"question": ["q"], "answer": ["a"]})
DEEP_SCHEMA = GOOD.replace_schema_metadata({b"huggingface": b"[" * 100_000})
BROKEN_TEXT = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xed\xa0"]).buffers())
HOSTILE = {
    "a column twice": (
        pa.Table.from_arrays([pa.array(["q"]), pa.array(["a"]), pa.array(["b"])], ["question", "answer", "answer"]),
        "/hub: .*answer",
    ),
    "no rows": (GOOD.slice(0, 0), "/hub: "),
    "no columns": (pa.table({}), "/hub: "),
    "deep metadata": (DEEP_SCHEMA, "/hub: maximum recursion depth exceeded"),
    "other metadata": (GOOD.replace_schema_metadata({b"huggingface": b"none"}), "/hub: Expecting value"),
    "text that is not UTF-8": (GOOD.set_column(0, "question", BROKEN_TEXT), "/hub, row 0 cannot be read: .*utf-8"),
    "deep lists": (nested(120), "too deeply nested"),
    "bytes": (pa.table({"question": [b"q"], "answer": ["a"]}), "row 0: the column 'question' is not text"),
    "bytes within": (pa.table({"question": ["q"], "answer": [{"a": [b"x"]}]}), "row 0: Object of type bytes"),
    "a map": (pa.table({"question": ["q"], "answer": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))}), "map<"),
    "a value repeated": (
        pa.table({"question": pa.array(["q" * 10_000] * 300), "answer": ["a"] * 300}),
        "more than 1 MiB in its first 105 rows",
    ),
}


@pytest.mark.parametrize("name", [*HOSTILE, "cut off", "one byte changed"])
def test_hostile_parquet_is_one_error(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table, says = HOSTILE.get(name, (pa.table({"question": ["q"] * 99, "answer": ["a"] * 99}), "/hub: "))
    file = tmp_path / "hub/test.parquet"
    file.parent.mkdir()
    pq.write_table(table, file)
    if name == "cut off":
        file.write_bytes(file.read_bytes()[:-9])
    elif name == "one byte changed":
        content = bytearray(file.read_bytes())
        content[4] ^= 0xFF  # in the header of the first page
        file.write_bytes(content)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setattr("qabench.data.sources.MAX_HUB_BYTES", 1 << 20)
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("QABENCH_OFFLINE", raising=False)
    source = HubDataset(str(file.parent)).file("b")
    with pytest.raises(QabenchError, match=says):
        local_path(source)
    assert find_local(source) is None


def test_many_row_groups_and_columns_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    columns = {f"c{number}": [number] * 500 for number in range(50)}
    table = pa.table({"question": ["q"] * 500, "answer": ["a"] * 500} | columns)
    pq.write_table(table, tmp_path / "hub/test.parquet", row_group_size=1)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    rows = list(HubDataset(str(tmp_path / "hub"), columns=["c7"]).rows())
    assert len(rows) == 500 and rows[0] | {"id": ""} == {"id": "", "question": "q", "answer": "a", "c7": 7}


def test_pinned_rows_come_from_the_cache_or_a_mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("QABENCH_OFFLINE", raising=False)
    with monkeypatch.context() as patch:
        on_the_hub(patch, ROWS[:1])
        rows = local_path(ASKED.file("b")).read_bytes()
        assert json.loads(rows)["question"] == "Who?"
        pinned = replace(ASKED, revision="c" * 40, sha256=hashlib.sha256(rows).hexdigest())
        with pytest.raises(DigestMismatch, match=f"expected {'0' * 64}"):
            local_path(replace(pinned, sha256="0" * 64).file("b"))
        assert [result.ok for result in fetch([pinned.file("b")], mirror=tmp_path / "mirror")] == [True]
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "empty"))
    with pytest.raises(SourceUnavailable, match=r"(?s)datasets cannot load it.*org/name/tree/c{40}.*qabench fetch b"):
        local_path(pinned.file("b"))
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path / "mirror"))
    assert local_path(pinned.file("b")).read_bytes() == rows


UNPINNED = """
from qabench.benchmarks import Benchmark, HubDataset
class Unpinned(Benchmark):
    name, title, settings, scores, groups = "unpinned", "U", (), (), {"match": ""}
    default_groups = ("match",)
    data = HubDataset("org/name", question="q", answer="a")
BENCHMARK = Unpinned()
"""


def test_rows_without_a_digest_are_a_deviation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("unpinned", "renamed"):
        (tmp_path / "own" / name).mkdir(parents=True)
        (tmp_path / "own" / name / "__init__.py").write_text(UNPINNED)
    for variable, folder in {"QABENCH_PATH": "own", "QABENCH_CACHE": "cache"}.items():
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("QABENCH_OFFLINE", raising=False)
    on_the_hub(monkeypatch, ROWS[:1])
    rows = benchmark("unpinned").load(None)
    line = f"unpinned_match|config:questions|data:{rows.data}|qabench:1"
    (sentence,) = deviations(line, benchmark("unpinned").declarations()["unpinned_match"])
    assert sentence == f"data: {rows.data} is not pinned; HubDataset has no sha256"
    with pytest.raises(InputError, match="has no BENCHMARK with the name 'renamed'"):
        benchmark("renamed")


def test_columns_have_the_types_of_all_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "early"
    package.mkdir()
    (package / "__init__.py").write_text("BENCHMARK = None\n")
    table = {"title": "E", "default": "c", "configs": {"c": {"description": "", "splits": {"test": ["./r.jsonl"]}}}}
    (package / "configs.json").write_text(json.dumps(table))
    (package / "r.jsonl").write_text('{"id": "1", "facts": [], "year": null}\n{"id": "2", "facts": ["a"], "year": 1}\n')
    monkeypatch.setenv("QABENCH_PATH", str(tmp_path))
    prepared = rows_builder("early")(config_name="c", cache_dir=str(tmp_path / "cache"), hash="0" * 40)
    prepared.download_and_prepare()
    assert prepared.as_dataset("test")["year"][:] == [None, 1]
