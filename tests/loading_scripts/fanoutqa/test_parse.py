import json
from pathlib import Path
from typing import Any

import pytest
from pinned_files import make_source, put

import qabench
from qabench import loading_scripts
from qabench.data import answers

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
    assert any(node["decomposition"] for q in SAMPLE for child in q["decomposition"] for node in child["decomposition"])


def test_other_data_never_meets_an_old_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed pin leads to other rows at once, with the same config and version."""
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    for question in ("one", "two"):
        data = json.dumps([SAMPLE[0] | {"question": question}]).encode()
        source = make_source(data, "fanoutqa/data/fanout-final-dev.json")
        put(tmp_path, source, data)
        monkeypatch.setitem(vars(loading_scripts.dataset_table("fanoutqa")), "sources", {source.path: source})
        (loaded,) = qabench.load_dataset("fanoutqa", "dev", split="validation", cache_dir=str(tmp_path / "hf"))
        assert loaded["question"] == question
