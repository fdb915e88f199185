from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qabench
from qabench import answers, loading_scripts
from qabench.data.pinned import SourceFile, SourceTable
from qabench.errors import DataError, DigestMismatch, InputError, SourceUnavailable
from qabench.loading_scripts.fanoutqa.parse import read_rows

DATA = "zhudotexe/fanoutqa/fanoutqa/data"
SAMPLE = json.loads((loading_scripts.FOLDER / "fanoutqa/sample/questions.json").read_text(encoding="utf-8"))


def assert_equal(raw: dict[str, Any], row: dict[str, Any]) -> None:
    """A row of the dataset has all values of its source row, with types and digits."""
    assert {key: row[key] for key in ("id", "question", "categories")} == {
        key: raw[key] for key in ("id", "question", "categories")
    }
    if "answer" in raw:
        assert repr(answers.loads(row["answer"])) == repr(raw["answer"])
        assert repr(answers.loads(row["decomposition"])) == repr(raw["decomposition"])
        pages = _pages(raw["decomposition"])
    else:
        pages = raw["necessary_evidence"]
    number = {key: [page[key] if isinstance(page[key], int) else None for page in pages] for key in ("pageid", "revid")}
    for key in ("pageid", "revid", "title", "url"):
        assert [page[key] for page in row["necessary_evidence"]] == number.get(key, [page[key] for page in pages])


def _pages(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for node in nodes:
        found += [node["evidence"]] if node["evidence"] else []
        found += _pages(node["decomposition"])
    return found


@pytest.mark.parametrize(("config", "split", "count"), [("dev", "validation", 310), ("test", "test", 724)])
def test_all_real_rows_round_trip(mirror: Path, tmp_path: Path, config: str, split: str, count: int) -> None:
    raw = json.loads((mirror / DATA / f"fanout-final-{config}.json").read_text(encoding="utf-8"))
    arrow = qabench.load_dataset("fanoutqa", config, split=split, cache_dir=str(tmp_path))
    arrow.to_parquet(tmp_path / "rows.parquet")
    import datasets

    parquet = datasets.Dataset.from_parquet(str(tmp_path / "rows.parquet"), cache_dir=str(tmp_path))
    streamed = qabench.load_dataset("qabench/fanoutqa", config, split=split, streaming=True)
    for rows in (arrow, parquet, streamed):
        compared = 0
        for source, row in zip(raw, rows, strict=True):
            assert_equal(source, row)
            compared += 1
        assert compared == count


def test_nov23_from_the_official_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has the files of November 2023 under the current names of the corrected files."""
    package = pytest.importorskip("fanoutqa", reason="needs the extra parity")
    for config, split, count in (("dev", "validation", 310), ("test", "test", 725)):
        data = (Path(package.__file__).parent / "data" / f"fanout-final-{config}.json").read_bytes()
        (tmp_path / DATA).mkdir(parents=True, exist_ok=True)
        (tmp_path / DATA / f"fanout-final-{config}-nov23.json").write_bytes(data)
        monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
        rows = qabench.load_dataset("fanoutqa", f"{config}_nov23", split=split, cache_dir=str(tmp_path / "hf"))
        assert len(rows) == count
        for source, row in zip(json.loads(data), rows, strict=True):
            assert_equal(source, row)


def test_the_sample_needs_nothing_and_covers_the_schema(tmp_path: Path) -> None:
    rows = qabench.load_dataset("fanoutqa", "sample", split="validation", cache_dir=str(tmp_path))
    for source, row in zip(SAMPLE, rows, strict=True):
        assert_equal(source, row)
    assert {type(q["answer"]) for q in SAMPLE} == {dict, list, str, int, float, bool}
    assert max(depth for q in SAMPLE for depth, _ in answers.subquestions(q["decomposition"])) == 3


def test_arguments_of_the_stock_function(tmp_path: Path) -> None:
    cache = str(tmp_path)
    every = qabench.load_dataset("fanoutqa", "sample", num_proc=2, cache_dir=cache)
    assert list(every) == ["validation"]
    part = qabench.load_dataset("fanoutqa", "sample", split="validation[:25%]", cache_dir=cache, keep_in_memory=True)
    assert part["id"][:] == every["validation"]["id"][:3]
    assert part.to_pandas().shape == (3, 6)
    with pytest.raises(InputError, match=r"no split 'train'; allowed: validation"):
        qabench.load_dataset("fanoutqa", "sample", split="train", cache_dir=cache)
    with pytest.raises(InputError, match="no config 'train'; allowed: dev, test, dev_nov23, test_nov23, sample"):
        qabench.load_dataset("fanoutqa", "train")
    with pytest.raises(InputError, match=r"unknown benchmark 'fanout' \(did you mean 'fanoutqa'\?\); allowed: .*"):
        qabench.load_dataset("fanout")


def test_offline_and_not_there(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    with pytest.raises(SourceUnavailable, match=r"(?s)fanout-final-dev\.json.*https://.*qabench fetch.*QABENCH_MIRROR"):
        qabench.load_dataset("fanoutqa", "dev", cache_dir=str(tmp_path))


def test_a_corrupted_mirror_is_never_used(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray((mirror / DATA / "fanout-final-dev.json").read_bytes())
    data[1000] ^= 1
    (tmp_path / DATA).mkdir(parents=True)
    (tmp_path / DATA / "fanout-final-dev.json").write_bytes(data)
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    with pytest.raises(DigestMismatch, match=r"(?s)expected|dfe79d9ec6949e8f81f16f2853f580abc6dfca1e"):
        qabench.load_dataset("fanoutqa", "dev", cache_dir=str(tmp_path / "hf"))


def test_other_data_never_meets_an_old_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed pin leads to other rows at once, with the same config and version."""
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    for question in ("one", "two"):
        row = SAMPLE[0] | {"question": question}
        pin(monkeypatch, tmp_path, json.dumps([row]).encode())
        (loaded,) = qabench.load_dataset("fanoutqa", "dev", split="validation", cache_dir=str(tmp_path / "hf"))
        assert loaded["question"] == question


def pin(monkeypatch: pytest.MonkeyPatch, folder: Path, data: bytes) -> None:
    """Replaces the dev file by ``data``, including the digest."""
    path = "fanoutqa/data/fanout-final-dev.json"
    (folder / "o/r" / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / "o/r" / path).write_bytes(data)
    file = SourceFile("fanoutqa", "o/r", "0" * 40, path, "", sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    monkeypatch.setattr(loading_scripts, "source_table", lambda name: SourceTable(name, (file,)))


def test_a_bad_row_is_named_through_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    pin(monkeypatch, tmp_path, json.dumps([SAMPLE[0], SAMPLE[1] | {"categories": "History"}]).encode())
    with pytest.raises(DataError, match=r"dev\.json, row 1, field 'categories': expected list, got string"):
        qabench.load_dataset("fanoutqa", "dev", cache_dir=str(tmp_path / "hf"))


PATHS = [("id",), ("answer",), ("categories",), ("decomposition", 0, "evidence"), ("decomposition", 0, "depends_on")]
PATHS += [("decomposition", 0, "evidence", "pageid"), ("decomposition", 0, "answer"), ("question",), ("decomposition",)]
JUNK = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()))
JUNK |= st.lists(st.integers(), max_size=2) | st.dictionaries(st.text(max_size=3), st.none(), max_size=2)


@given(st.sampled_from(PATHS), st.sampled_from(["replace", "delete", "add"]), JUNK)
def test_any_broken_row_loads_or_is_named(
    tmp_path_factory: pytest.TempPathFactory, path: tuple[Any, ...], how: str, junk: Any
) -> None:
    row = copy.deepcopy(SAMPLE[0])
    target: Any = row
    for key in path[:-1]:
        target = target[key]
    if how == "replace":
        target[path[-1]] = junk
    elif how == "delete":
        del target[path[-1]]
    else:
        target["surprise"] = junk
    file = tmp_path_factory.mktemp("rows") / "dev.json"
    file.write_text(json.dumps([SAMPLE[1], row]), encoding="utf-8")
    try:
        rows = list(read_rows(file, "dev"))
    except DataError as error:
        assert str(file) in str(error)
        assert "row 1" in str(error)
    else:
        assert_equal(row, rows[1])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'[{"id": "a"', r"not JSON \(.*column \d+"),
        (b"\xff\xfe[]", "not UTF-8 at byte 0"),
        (b'{"id": 1}', "expected a list of rows, got object"),
        (b'["a"]', "row 0: expected an object, got string 'a'"),
        (b"[" * 200_000, "nested deeper than"),
        (b"[" + b"9" * 5000 + b"]", "not valid JSON"),
        (b'[\n{"id": }]', r"not JSON \(.*, line 2, column 8\)"),
    ],
)
def test_files_without_a_list_of_rows(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "dev.json").write_bytes(data)
    with pytest.raises(DataError, match=r"dev\.json.*" + message):
        list(read_rows(tmp_path / "dev.json", "dev"))


def test_bom_and_crlf_are_fine(tmp_path: Path) -> None:
    text = json.dumps(SAMPLE, indent=1).replace("\n", "\r\n")
    (tmp_path / "dev.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert len(list(read_rows(tmp_path / "dev.json", "dev"))) == len(SAMPLE)
