"""All datasets: cards, shipped configs, and damaged files, which load or are named."""

import copy
import csv
import functools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from datasets.info import DatasetInfosDict
from felm_oracle import to_source
from huggingface_hub import DatasetCard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qabench.data.rows import read_json_lines, read_json_list
from qabench.errors import DataError, SourceUnavailable
from qabench.loading_scripts import FOLDER, LEADERBOARD, benchmark_names, dataset_table
from qabench.loading_scripts.felm.parse import FIELDS
from qabench.loading_scripts.load import builder, load_dataset
from qabench.loading_scripts.published import published_rows

SHIPPED = [
    (name, config.name)
    for name in benchmark_names()
    for config in dataset_table(name).configs.values()
    if not config.files
]
cached_builder = functools.cache(builder)


def card_infos(name: str) -> DatasetInfosDict:
    return DatasetInfosDict.from_directory(str(FOLDER / name))


@pytest.mark.parametrize("name", benchmark_names())
def test_card_names_configs_and_features(name: str) -> None:
    data, table = DatasetCard.load(str(FOLDER / name / "README.md")).data, dataset_table(name)
    infos = card_infos(name)
    assert list(infos) == list(table.configs) == [config["config_name"] for config in data.configs]
    assert [config["config_name"] for config in data.configs if config.get("default")] == [table.default]
    for config, info in infos.items():
        assert info.features == builder(name, config).info.features, config
        assert set(info.splits or ()) <= set(table.configs[config].splits)


# configs that are not about questions
DOCUMENTS = {"corpus", "chunks", "qrels", "contexts", LEADERBOARD}


@pytest.mark.parametrize("name", benchmark_names())
def test_questions_have_an_id(name: str) -> None:
    for config in dataset_table(name).configs:
        if config.removeprefix("sample_") not in DOCUMENTS:
            features = builder(name, config).info.features
            assert features["id"].dtype == "string" and next(iter(features)) == "id", config


@pytest.mark.parametrize("name", benchmark_names())
def test_card_has_the_sizes(name: str, mirror: Path) -> None:
    counted = 0
    for config, info in card_infos(name).items():
        for split, size in (info.splits or {}).items():
            try:
                rows = load_dataset(name, config, split=split, streaming=True)
                assert sum(1 for _ in rows) == size.num_examples, (config, split)
            except SourceUnavailable:
                continue
            counted += 1
    assert counted >= 2


@pytest.mark.parametrize(("name", "config"), SHIPPED)
def test_shipped_configs(name: str, config: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path / "mirror"))
    splits = load_dataset(name, config, cache_dir=str(tmp_path / "hf"))
    assert list(splits) == list(dataset_table(name).configs[config].splits)
    for split, rows in splits.items():
        assert len(rows) >= 2
        assert list(load_dataset(name, config, split=split, streaming=True)) == rows.to_list()


# Damaged files


def shipped_file(name: str, config: str) -> Path:
    (files,) = dataset_table(name).configs[config].splits.values()
    return FOLDER / name / files[0]


def rows_of(name: str, config: str, path: Path) -> list[dict[str, Any]]:
    """The rows of a file from the builder's code, which fit into Arrow with the config's features."""
    source = cached_builder(name, config)
    rows = list(published_rows(path) if config == LEADERBOARD else source._rows(path, "test"))
    features = source.info.features
    pa.Table.from_pylist([features.encode_example(row) for row in rows], features.arrow_schema)
    return rows


def raw_rows(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return list(csv.reader(text.splitlines()))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.split("\n") if line]
    document = json.loads(text)
    return document if isinstance(document, list) else document.get("questions", [document])


def written(rows: list[Any], path: Path) -> bytes:
    """The content of a file with these rows, in the format of ``path``."""
    if path.suffix == ".csv":
        return "\n".join(",".join(map(str, row)) for row in rows).encode("utf-8", "surrogatepass")
    if path.suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if path.suffix == ".ipynb":
        return json.dumps(rows[0]).encode()
    return json.dumps({"questions": rows} if path.match("fastbook/*/questions.json") else rows).encode()


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of all values in a JSON value."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from spots(item)


SCALARS = st.sampled_from([None, True, 0, -1, 1.5, float("nan"), float("inf"), 2**63, 10**400, "9" * 5000, "01"])
SCALARS |= st.sampled_from(["", "x", "true", "N/A", "Partial", "fooled", "\x00é", "\ud800", "x" * 200_000]) | st.text()
JUNK = SCALARS | st.lists(SCALARS | st.just([]) | st.just({}), max_size=2)
JUNK |= st.dictionaries(st.sampled_from(["claim_string", "\ud800", "x"]), SCALARS | st.just([]), max_size=2)


@st.composite
def damaged_rows(draw: st.DrawFn, rows: list[Any]) -> tuple[list[Any], int]:
    """The rows after one or two changes of one row, and its position."""
    rows, position = copy.deepcopy(rows), draw(st.integers(0, len(rows) - 1))
    for _ in range(draw(st.integers(1, 2))):
        container, key = draw(st.sampled_from(list(spots(rows[position]))))
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                container[key] = draw(JUNK)
            case "remove":
                del container[key]
            case "add" if isinstance(container, dict):
                container["surplus"] = draw(JUNK)
            case "add":
                container.insert(key, draw(JUNK))
    return rows, position


@pytest.mark.parametrize(("name", "config"), SHIPPED)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_row_loads_or_is_named(name: str, config: str, tmp_path: Path, data: st.DataObject) -> None:
    original = shipped_file(name, config)
    rows, position = data.draw(damaged_rows(raw_rows(original)))
    path = tmp_path / original.name
    path.write_bytes(written(rows, original))
    try:
        loaded = rows_of(name, config, path)
    except DataError as error:
        message = str(error)
        place = {".json": f", row {position}", ".jsonl": f", line {position + 1}"}.get(path.suffix, "")
        assert message.startswith(f"{path}{place}")
        assert re.search("field|expected the columns|not CSV|not UTF-8", message)
        assert len(message.encode()) < len(str(path)) + 1500
    else:
        if (name, config) == ("felm", "sample"):  # loading is lossless
            assert json.dumps(to_source(loaded[position])) == json.dumps({key: rows[position][key] for key in FIELDS})


@pytest.mark.parametrize(("name", "config"), SHIPPED)
@pytest.mark.parametrize(
    "damage",
    [lambda data: b"[" + data, lambda data: b"\xff\xfe" + data, lambda data: b"[" * 100_000],
    ids=["syntax", "encoding", "depth"],
)
def test_a_damaged_file_is_named(name: str, config: str, damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    original = shipped_file(name, config)
    path = tmp_path / original.name
    path.write_bytes(damage(original.read_bytes()))
    with pytest.raises(DataError, match=re.escape(str(path))):
        rows_of(name, config, path)


@pytest.mark.parametrize(("name", "config"), SHIPPED)
def test_a_byte_order_mark_and_other_line_ends_change_nothing(name: str, config: str, tmp_path: Path) -> None:
    original = shipped_file(name, config)
    path, data = tmp_path / original.name, original.read_bytes()
    whole = rows_of(name, config, original)
    lf = data.replace(b"\r\n", b"\n")
    for changed in (b"\xef\xbb\xbf" + data, lf, lf.replace(b"\n", b"\r\n"), data + b"\n\r\n"):
        path.write_bytes(changed)
        assert json.dumps(rows_of(name, config, path)) == json.dumps(whole)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'[{"id": "a"', r"rows.json: not JSON \(.*column \d+"),
        (b"\xff\xfe[]", r"rows.json: not JSON \(.*byte 0xff"),
        (b'{"id": 1}', "rows.json: expected a list of rows, got object"),
        (b'["a"]', "rows.json, row 0: expected an object, got string 'a'"),
        (b"[" + b"9" * 5000 + b"]", "rows.json: not JSON"),
        (b'[\n{"id": }]', r"rows.json: not JSON \(.*: line 2 column 8 "),
        (b"id,text\n1,a\n", r"rows.json: not JSON \(.*\); expected a JSON list of rows, or one JSON object per line"),
        (b"PAR1\x15", "rows.json: not JSON, but a Parquet file; expected a JSON list"),
        (b'{"id": 1}\n{"id": 2', r"rows.json, line 2: not JSON"),
    ],
)
def test_a_file_without_a_list_of_rows(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_bytes(data)
    with pytest.raises(DataError, match=message):
        list(read_json_list(tmp_path / "rows.json"))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fanoutqa", r"other\.jsonl, line 1: unknown field 'text'; the fields are id, question, decomposition, "),
        ("felm", r"other\.jsonl, line 1: unknown field 'id'; the fields are index, domain, "),
        ("expertqa", r"other\.jsonl, line 1: unknown field 'id'; the fields are question, annotator_id, "),
        ("fastbook", r"other\.jsonl: .* got JSON Lines .* is \{\"questions\": \[\.\.\.\]\}, with the fields chapter, "),
    ],
)
def test_a_file_of_another_dataset_is_named(name: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"id": "1", "text": "a"}\n{"id": "2", "text": "b"}\n')
    with pytest.raises(DataError, match=says):
        load_dataset(name, data_files=str(file))


@pytest.mark.parametrize("second", [b'{"a": ', b"\xff", b"[1]", b"null", b"\xef\xbb\xbf{}"])
def test_a_damaged_line_is_named(second: bytes, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'\n{"a": 1}\n' + second)
    with pytest.raises(DataError, match=r"rows\.jsonl, line 3: "):
        list(read_json_lines(tmp_path / "rows.jsonl"))


def test_a_damaged_row_is_named_through_datasets(tmp_path: Path) -> None:
    rows = raw_rows(shipped_file("fanoutqa", "sample"))
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([rows[0], rows[1] | {"categories": "History"}]), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"mine.json, row 1 \(id '\w+'\), field 'categories': expected list, got string 'History'$"
    ):
        load_dataset("fanoutqa", "dev", data_files=path, cache_dir=str(tmp_path / "hf"))
