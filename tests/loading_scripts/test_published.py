"""Published scores as datasets, and the files they come from."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import qabench
from qabench import loading_scripts
from qabench.data.rows import Row
from qabench.errors import DataError
from qabench.loading_scripts.fanoutqa.leaderboard import published_scores, read_results
from qabench.loading_scripts.published import parse_published, shipped_scores

MEASURES = {"precision": 0.25, "recall": 0.5, "fscore": 0.375}
SETTING = {
    "acc": {"loose": 0.5, "strict": 0},
    "rouge": {"rouge1": MEASURES, "rouge2": MEASURES, "rougeL": MEASURES},
    "bleurt": None,
    "gpt": 0.125,
}
RESULTS: dict[str, Any] = {
    "_submission_hash": "0",
    "_results_hash": "0",
    "metadata": {
        "name": "S",
        "authors": "A",
        "url": None,
        "citation": "C",
        "type": "OTHER",
        "context": 4096,
        "is_trained_for_function_calling": False,
    },
    "closedbook": None,
    "openbook": SETTING,
}
SHIPPED = [path.parent.name for path in loading_scripts.FOLDER.glob("*/leaderboard.json")]


def results(tmp_path: Path, document: Any) -> list[dict[str, Any]]:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return list(read_results(path))


def test_one_row_per_setting(tmp_path: Path) -> None:
    (row,) = results(tmp_path, RESULTS)
    assert (row["system"], row["setting"], row["details"], row["file"]) == ("S", "open-book", None, "s.json")
    assert row["acc"] == {"loose": 0.5, "strict": 0.0}
    assert (row["rouge"]["rougeL"], row["bleurt"], row["gpt"]) == (MEASURES, None, 0.125)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra": 1}, "s.json: unknown field 'extra'"),
        ({"metadata": RESULTS["metadata"] | {"context": "4k"}}, "field 'metadata', field 'context': expected integer"),
        ({"openbook": SETTING | {"acc": {"loose": 0.5}}}, "field 'acc': the field 'strict' is missing"),
        ({"openbook": SETTING | {"gpt": "high"}}, "field 'gpt': expected number"),
        ({"openbook": []}, "field 'openbook': expected object"),
    ],
)
def test_broken_results_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        results(tmp_path, RESULTS | changes)


def test_leaderboard_equals_the_files(mirror: Path, tmp_path: Path) -> None:
    rows = qabench.load_dataset("fanoutqa", "leaderboard", split="test", cache_dir=str(tmp_path)).to_list()
    keys = {"closed-book": "closedbook", "open-book": "openbook", "evidence-provided": "evidenceprovided"}
    folder = mirror / "zhudotexe/fanoutqa/leaderboard-submissions/results"
    files = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    assert (len(files), len(rows)) == (16, 48)
    for row in rows:
        document = files[row["file"]]
        assert {name: row[name] for name in SETTING} == document[keys[row["setting"]]]
        assert row["system"] == document["metadata"]["name"]
        assert all(row[name] == value for name, value in document["metadata"].items() if name != "name")
        assert row["judge_source"] == "inferred from the date of the file"
    judges = Counter((row["judge"], row["setting"]) for row in rows)
    assert judges == {
        (judge, setting): count for judge, count in (("gpt-4-0613", 13), ("gpt-4o-2024-11-20", 3)) for setting in keys
    }
    assert len({(one.system, one.setting, one.metric) for one in published_scores()}) == 48 * 13


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_shipped_scores_load(name: str, tmp_path: Path) -> None:
    rows = qabench.load_dataset(name, "leaderboard", split="test", cache_dir=str(tmp_path)).to_list()
    assert [parse_published(Row.of(row, "row")) for row in rows] == shipped_scores(name)
    assert all(0 < row["value"] < 1 for row in rows)
