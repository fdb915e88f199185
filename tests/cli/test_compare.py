"""``qabench compare`` and ``leaderboard``: tables, invalid input, and ranks only among comparable scores."""

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

ANSWERS = [str(FOLDER / f"fanoutqa/sample/generations/{name}.jsonl") for name in ("careful", "hasty", "rambling")]
SAMPLE = ("--config", "sample", "--lemmatizer", "simplemma")
SELECTING = {
    "score": ["fanoutqa", ANSWERS[0], *SAMPLE, "--json"],
    "compare": ["fanoutqa", *ANSWERS[:2], *SAMPLE, "--resamples", "10", "--json"],
    "leaderboard": ["fanoutqa", "--json"],
    "report": [ANSWERS[0], "--benchmark", "fanoutqa", "--config", "sample", "-o", "@/page"],
    "results": ["@/scores.json", "--setting", "closed-book", "--allow-unofficial", "--json"],
}


def run(*arguments: object) -> str:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False).stdout


@pytest.fixture(autouse=True)
def _published(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    scores = [PublishedScore(f"S{i}", "closed-book", "test", "acc.loose", i / 10, "a paper") for i in (3, 5, 3)]
    scores.append(PublishedScore("S", "open-book", "test", "acc.strict", 0.5, "a paper"))
    monkeypatch.setattr("qabench.benchmarks.fanoutqa.FanOutQABenchmark.published", lambda self: scores)
    monkeypatch.setenv("COLUMNS", "250")


def test_a_score_that_no_system_has(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        file.write_text('{"id": "0", "answer": "ALL_CORRECT"}\n')
    with pytest.raises(InputError, match=r"no system has a score: undefined .* with --scores: .*recall"):
        run("compare", "felm", *files, "--config", "sample")


def test_the_tables_and_notes() -> None:
    text = run("compare", "fanoutqa", *ANSWERS, *SAMPLE, "--correction", "bh")
    parts = ("Loose accuracy", "careful - rambling", "corrected p", "no significant difference", "randomization test")
    for part in (
        *parts,
        "corrected over all pairs (bh)",
        "hasty: questions without a prediction: 1",
        "not official",
        "acc: fanout_acc|",
    ):
        assert part in text


def test_scores_of_one_system_have_no_table() -> None:
    text = run("compare", "fanoutqa", ",".join(ANSWERS[:2]), ANSWERS[2], *SAMPLE, "--scores", "acc")
    assert text.count("Pairs") == 2 and "rambling has no score acc.strict.pass@2" in text


def test_the_benchmark_may_come_first(tmp_path: Path) -> None:
    run("report", "fanoutqa", *ANSWERS, "--config", "sample", "--scores", "rouge", "-o", tmp_path)
    assert {"index.html", "report.json"} == {path.name for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="with their benchmark as the first argument"):
        run("score", ANSWERS[0])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"has no log \(allowed: .eval of `qabench run`; .json, samples_"):
        run("report", tmp_path / "empty", "-o", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["fanoutqa", ANSWERS[0], "--config", "sample"], "give at least two systems"),
     (["fanoutqa", ANSWERS[0], ANSWERS[0], "--config", "sample"], "the file was given twice"),
     (["fanoutqa", *ANSWERS, "--scores", "f1"], "has no score 'f1'; allowed: scores acc.loose"),
     (["none.eval", "other.eval"], "none.eval does not exist")],
)  # fmt: skip
def test_errors_name_the_problem(arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run("compare", *arguments)


def rows(*arguments: object) -> list[dict[str, Any]]:
    return list(json.loads(run("leaderboard", "fanoutqa", *arguments, "--json")))


def test_scores_are_ranked_in_their_group() -> None:
    assert [(row["rank"], row["system"]) for row in rows()] == [(1, "S5"), (2, "S3"), (2, "S3")]
    assert [row["system"] for row in rows("--scores", "acc.strict")] == ["S"]
    assert [row["rank"] for row in rows("--scores", "acc.strict", "--scores", "acc.loose")] == [1, 2, 2, 1]
    assert rows("--scores", "acc") == rows("--scores", "acc.strict,acc.loose")


def test_own_scores_have_intervals_and_deviations(tmp_path: Path) -> None:
    (own,) = rows(ANSWERS[0], "--config", "sample", "--setting", "closed-book", "-o", tmp_path / "out.json")
    assert own["low"] < own["score"] < own["high"] and own["n"] == 12 and own["setting"] == "closed-book"
    assert own["rank"] is None and own["deviations"]  # the sample is not official
    assert json.loads((tmp_path / "out.json").read_text()) == [own]


def test_entries_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SimpleNamespace(
        rank=1, model_id="org/model", value=0.5, filename="fanoutqa_test_closed_book.yaml", verified=True, notes="n 724"
    )
    monkeypatch.setattr("qabench.cli.reports.offline_variable", lambda: None)
    answers = [[entry], [SimpleNamespace(rank="x")]]
    asked: list[dict[str, Any]] = []

    def answer(self: HfApi, dataset: str, **options: Any) -> list[SimpleNamespace]:
        asked.append(options)
        return answers[0]

    monkeypatch.setattr(HfApi, "get_dataset_leaderboard", answer)
    row = rows()[-1]
    assert row["source"] == "Hub: fanoutqa_test_closed_book.yaml, verified" and row["system"] == "org/model"
    assert (row["verified"], row["notes"]) == (True, "n 724")
    assert asked[0]["base_model_only"] is False, "fine-tuned models are shown, too"
    answers.pop(0)
    assert "The Hub's entries are left out: " in run("leaderboard", "fanoutqa")


def test_nothing_to_rank() -> None:
    with pytest.raises(InputError, match="there are no scores of FanOutQA to rank"):
        run("leaderboard", "fanoutqa", "--setting", "evidence-provided")
    with pytest.raises(InputError, match="FanOutQA has no setting 'none'; allowed: closed-book"):
        run("leaderboard", "fanoutqa", "--setting", "none")


@pytest.mark.parametrize("command", SELECTING)
def test_options_take_scores_and_groups(command: str, tmp_path: Path) -> None:
    if command == "results":
        run("score", "fanoutqa", ANSWERS[0], *SAMPLE, "-o", tmp_path / "scores.json")
    words = [str(word).replace("@", str(tmp_path)) for word in SELECTING[command]]
    for names, loose, strict in (("acc", True, True), ("acc.loose", True, False), ("rouge2.recall", False, False)):
        if command == "leaderboard" and names == "rouge2.recall":
            continue  # it is not among the published scores
        text = run(command, *words, "--scores", names)
        files = "".join(path.read_text() for path in tmp_path.rglob("*.json") if path.name != "scores.json")
        shown = files if command == "report" else text
        assert ("acc.loose" in shown, "acc.strict" in shown) == (loose, strict), (names, shown)
        for path in [path for path in tmp_path.rglob("*.json") if path.name != "scores.json"]:
            path.unlink()
    message = r"has no score 'acc.lose' \(did you mean 'acc.loose'\?\); allowed: scores acc.loose, "
    with pytest.raises(InputError, match=message):
        run(command, *words, "--scores", "acc.lose")
