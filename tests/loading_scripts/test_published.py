"""Published scores as datasets, and the files they come from."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qabench
from qabench import loading_scripts
from qabench.errors import DataError
from qabench.loading_scripts.fanoutqa.leaderboard import published_scores, read_results
from qabench.loading_scripts.published import PublishedScore, shipped_scores

RESULTS = "zhudotexe/fanoutqa/leaderboard-submissions/results"
SHIPPED = [path.parent.name for path in loading_scripts.FOLDER.glob("*/leaderboard.json")]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda results: results.update(extra=1), "s.json: unknown field 'extra'"),
        (lambda results: results["metadata"].update(context="4k"), "'metadata', field 'context': expected integer"),
        (lambda results: results["openbook"]["acc"].pop("strict"), "field 'acc': the field 'strict' is missing"),
        (lambda results: results["openbook"].update(gpt="high"), "field 'gpt': expected number"),
        (
            lambda results: results["openbook"]["acc"].update(loose=10**400),
            "field .loose.: integer 10+... is too large",
        ),
        (lambda results: results.update(openbook=[]), "field 'openbook': expected object"),
    ],
)
def test_damaged_results_are_named(mirror: Path, tmp_path: Path, damage: Callable[[Any], Any], message: str) -> None:
    results = json.loads(sorted((mirror / RESULTS).glob("*.json"))[0].read_text(encoding="utf-8"))
    damage(results)
    path = tmp_path / "s.json"
    path.write_text(json.dumps(results), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_results(path))


def test_leaderboard_equals_the_files(mirror: Path, tmp_path: Path) -> None:
    rows = qabench.load_dataset("fanoutqa", "leaderboard", split="test", cache_dir=str(tmp_path)).to_list()
    keys = {"closed-book": "closedbook", "open-book": "openbook", "evidence-provided": "evidenceprovided"}
    files = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (mirror / RESULTS).glob("*.json")}
    assert (len(files), len(rows)) == (16, 48)
    for row in rows:
        document = files[row["file"]]
        assert {name: row[name] for name in ("acc", "rouge", "bleurt", "gpt")} == document[keys[row["setting"]]]
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
    assert [PublishedScore(**row) for row in rows] == shipped_scores(name)
    assert all(0 < row["value"] < 1 for row in rows)
