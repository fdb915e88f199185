"""CSV of scores, comparisons and leaderboards: one table of exact numbers, one row per number."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qabench.cli import app
from qabench.loading_scripts import FOLDER

pytestmark = pytest.mark.quick
FILES = [str(FOLDER / f"fanoutqa/sample/generations/{name}.jsonl") for name in ("careful", "hasty", "rambling")]
OPTIONS = ("--config", "sample", "--lemmatizer", "simplemma", "--scores", "acc")


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def rows_and_document(*arguments: str) -> tuple[list[dict[str, str]], Any]:
    table = printed(*arguments, "--format", "csv")
    return list(csv.DictReader(table.splitlines(), strict=True)), json.loads(printed(*arguments, "--json"))


def number(text: str) -> float | None:
    return float(text) if text else None


def test_scores_and_groups() -> None:
    rows, document = rows_and_document("score", "fanoutqa", *FILES, *OPTIONS, "--by", "type")
    numbers = {(row["system"], row["grouping"], row["group"], row["score"]): row for row in rows}
    assert len(numbers) == len(rows) == 3 * 2 * (1 + 6)
    for evaluation in document["evaluations"]:
        groups = {("", ""): evaluation}
        groups |= {("type", group): of_group for group, of_group in evaluation["by"]["type"].items()}
        for (grouping, group), expected in groups.items():
            for score, value in expected["scores"].items():
                row = numbers[evaluation["name"], grouping, group, score]
                interval = expected["intervals"][score]
                assert float(row["value"]) == value and int(row["n"]) == expected["n"][score]
                for name in ("low", "high", "standard_error"):
                    assert number(row[name]) == interval[name]
                assert row["official"] == ("" if grouping else "no") and row["kind"] == "score"


def test_a_score_that_is_undefined_has_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "silent.jsonl"
    path.write_text('{"id": 1, "answer": "ALL_CORRECT"}\n')
    rows, _ = rows_and_document("score", "felm", str(path), "--config", "sample")
    (precision,) = (row for row in rows if row["score"] == "precision")
    assert (precision["value"], precision["low"], precision["n"]) == ("", "", "0")


def test_systems_and_pairs() -> None:
    rows, document = rows_and_document("compare", "fanoutqa", *FILES, *OPTIONS)
    assert {row["kind"] for row in rows} == {"score", "difference"}
    assert len(rows) == sum(len(each["systems"]) + len(each["pairs"]) for each in document["comparisons"])
    for comparison in document["comparisons"]:
        for pair in comparison["pairs"]:
            (row,) = (
                row
                for row in rows
                if (row["score"], row["system"], row["versus"]) == (comparison["metric"], pair["first"], pair["second"])
            )
            assert float(row["value"]) == pair["difference"]
            for name in ("low", "high", "p", "corrected_p", "detectable", "wins", "ties", "losses", "n"):
                assert number(row[name]) == pair[name]


def test_a_leaderboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    arguments = ("leaderboard", "felm", "--config", "all", "--scores", "f1")
    rows, document = rows_and_document(*arguments)
    assert [(row["system"], float(row["value"]), row["rank"]) for row in rows] == [
        (entry["system"], entry["score"], str(entry["rank"])) for entry in document
    ]
    assert rows
