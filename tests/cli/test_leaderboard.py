"""``qabench leaderboard``: ranks only among comparable scores."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import HfApi
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError
from qabench.loading_scripts import FOLDER
from qabench.loading_scripts.published import PublishedScore

ANSWERS = sorted((FOLDER / "fanoutqa/sample/generations").iterdir())[0]


@pytest.fixture(autouse=True)
def _published(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [PublishedScore(f"S{i}", "closed-book", "test", "acc.loose", i / 10, "a paper") for i in (3, 5, 3)]
    scores.append(PublishedScore("S", "open-book", "test", "acc.strict", 0.5, "a paper"))
    monkeypatch.setattr("qabench.benchmarks.published.published", lambda name: scores)


def rows(*arguments: object) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["leaderboard", "fanoutqa", *map(str, arguments), "--json"], catch_exceptions=False)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def test_scores_are_ranked_in_their_group() -> None:
    assert [(row["rank"], row["system"]) for row in rows()] == [(1, "S5"), (2, "S3"), (2, "S3")]
    assert [row["system"] for row in rows("--metric", "acc.strict")] == ["S"]
    assert [row["rank"] for row in rows("--metric", "acc.strict", "--metric", "acc.loose")] == [1, 2, 2, 1]


def test_own_scores_have_intervals_and_deviations(tmp_path: Path) -> None:
    (own,) = rows(ANSWERS, "--config", "sample", "--setting", "closed-book", "-o", tmp_path / "out.json")
    assert own["low"] < own["score"] < own["high"] and own["n"] == 12 and own["setting"] == "closed-book"
    assert own["rank"] is None and own["deviations"]  # the sample is not official
    assert json.loads((tmp_path / "out.json").read_text()) == [own]


def test_entries_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SimpleNamespace(rank=1, model_id="org/model", value=0.5, filename="fanoutqa_test_closed_book.yaml")
    monkeypatch.setattr("qabench.io.environment.offline_variable", lambda: None)
    monkeypatch.setattr(HfApi, "get_dataset_leaderboard", lambda self, dataset, timeout: [entry])
    assert rows()[-1]["source"] == "Hub: fanoutqa_test_closed_book.yaml" and rows()[-1]["system"] == "org/model"
    monkeypatch.setattr(HfApi, "get_dataset_leaderboard", lambda self, dataset, timeout: [SimpleNamespace(rank="x")])
    done = CliRunner().invoke(app, ["leaderboard", "fanoutqa"])
    assert done.exit_code == 0 and "The Hub's entries are left out: " in done.output


def test_nothing_to_rank() -> None:
    error = CliRunner().invoke(app, ["leaderboard", "fanoutqa", "--setting", "none"]).exception
    assert isinstance(error, InputError) and "there are no scores of FanOutQA to rank" in str(error)
