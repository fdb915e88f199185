"""``qabench compare`` and ``leaderboard``: tables, invalid input, and ranks only among comparable
scores.
"""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import HfApi
from typer.testing import CliRunner

import qabench
from qabench import load_dataset
from qabench.benchmarks import benchmark
from qabench.benchmarks.published import RankedSystem, ranked
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
    monkeypatch.setattr("qabench.benchmarks.fanoutqa.numbers.FanOutQANumbers.published", lambda self: scores)
    monkeypatch.setenv("COLUMNS", "250")


def test_a_score_that_no_system_has(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        file.write_text('{"id": "0", "answer": "ALL_CORRECT"}\n')
    with pytest.raises(InputError, match=r"no system has a score: undefined .* with --scores: .*recall"):
        run("compare", "felm", *files, "--config", "sample")
    system = qabench.evaluate_predictions("felm", "sample", files[0])
    with pytest.raises(InputError, match=r"not computed\. empty: no answers yet\. Choose"):
        qabench.compare([system, replace(system, path="empty.eval", records=[], given_name="empty")])


def test_uncorrected_p_values_are_not_called_corrected() -> None:
    text = run("compare", "fanoutqa", *ANSWERS, *SAMPLE, "--correction", "none", "--resamples", "10")
    assert "seed 0, not corrected for several pairs; intervals" in text and "(none)" not in text


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


def test_all_scores_of_a_comparison_need_scores() -> None:
    arguments = ("compare", *SELECTING["compare"], "--all-scores")
    (note,) = [each for each in json.loads(run(*arguments))["notes"] if "--all-scores" in each]
    assert note.startswith("--all-scores has no effect without --scores, such as --scores acc,rouge: ")
    document = json.loads(run(*arguments, "--scores", "acc"))
    assert len(document["comparisons"]) == 2 and not any("--all-scores" in each for each in document["notes"])


def test_scores_of_one_system_have_no_table() -> None:
    text = run("compare", "fanoutqa", ",".join(ANSWERS[:2]), ANSWERS[2], *SAMPLE, "--scores", "acc")
    scores, _, pairs = text.partition("Pairs")
    assert "rambling has no score acc.strict.pass@2" in text and "pass@2 " not in scores
    assert [pairs.count(f"\n{name} ") for name in ("acc.loose", "acc.strict")] == [1, 1]


def test_the_benchmark_may_come_first(tmp_path: Path) -> None:
    run("report", "fanoutqa", *ANSWERS, "--config", "sample", "--scores", "rouge", "-o", tmp_path)
    assert {"index.html", "report.json"} == {path.name for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="with their benchmark as the first argument"):
        run("score", ANSWERS[0])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"has no log \(allowed: .eval or .json logs of runs; .jsonl or"):
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


def test_systems_without_a_rank_follow_those_with_one() -> None:
    own = RankedSystem("own", 0.9, "acc.loose", "test", "closed-book", "own", deviations=("data",))
    alone = replace(own, system="alone", setting="agent")
    published = replace(own, system="published", score=0.5, deviations=())
    ranks = [(each.system, each.rank) for each in ranked([alone, own, published], benchmark("fanoutqa"))]
    assert ranks == [("published", 1), ("own", None), ("alone", None)]


def test_published_scores_without_a_setting() -> None:
    rows = json.loads(run("leaderboard", "felm", "--setting", "cot", "--json"))
    assert [row["system"] for row in rows] == ["GPT-4", "Vicuna-33B", "ChatGPT"]
    assert "The published scores of FELM name no setting" in run("leaderboard", "felm", "--setting", "cot")


def test_nothing_to_rank() -> None:
    message = (
        "there are no scores of FanOutQA to rank in the setting evidence-provided; "
        "the settings with scores are closed-book, open-book"
    )
    with pytest.raises(InputError, match=message):
        run("leaderboard", "fanoutqa", "--setting", "evidence-provided")
    with pytest.raises(InputError, match="FanOutQA has no setting 'none'; allowed: closed-book"):
        run("leaderboard", "fanoutqa", "--setting", "none")


def test_a_leaderboard_names_a_system_without_its_score(tmp_path: Path) -> None:
    answers, passages = tmp_path / "answers.jsonl", tmp_path / "passages.jsonl"
    id = load_dataset("fastbook", "sample", split="test")[0]["id"]
    answers.write_text(json.dumps({"id": id, "answer": "an answer"}))
    passages.write_text(json.dumps({"id": id, "passages": ["a passage"]}))
    printed = run("leaderboard", "fastbook", answers, passages, "--config", "sample")
    assert "answers has no score recall@10" in printed and "passages has no score" not in printed


def test_report_and_leaderboard_take_a_benchmarks_options(tmp_path: Path) -> None:
    options = ("--lemmatizer", "simplemma", "--only-score-answered")
    told = json.loads(run("report", "fanoutqa", ANSWERS[1], *SAMPLE, options[2], "-o", tmp_path / "page", "--json"))
    scores = json.loads(Path(told["numbers"]).read_text())["sections"][0]["scores"]
    ranked = json.loads(run("leaderboard", "fanoutqa", ANSWERS[1], "--config", "sample", *options, "--json"))
    assert {score["n"] for score in scores} == {11} == {ranked[0]["n"]}
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"id": "0", "answer": "Segment 1 is wrong."}\n')
    felm = (replies, "--config", "sample", "--reply-format", "vicuna")
    run("report", "felm", *felm, "-o", tmp_path / "felm")
    assert '"f1"' in (tmp_path / "felm/report.json").read_text()
    assert [row["metric"] for row in json.loads(run("leaderboard", "felm", *felm, "--json")) if row["n"]] == ["f1"]


def test_options_of_a_benchmark_that_is_not_named(tmp_path: Path) -> None:
    message = "only_score_answered: options of a benchmark. Name it before the files"
    with pytest.raises(InputError, match=message):
        run("report", "run.eval", "--only-score-answered", "-o", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_leaderboard_of_a_trec_run(tmp_path: Path) -> None:
    trec, corpus = tmp_path / "fts.run", tmp_path / "chunks.jsonl"
    run("fastbook", "retrieve", "--config", "sample", "--method", "fts", "--output", trec)
    load_dataset("fastbook", "sample_chunks", split="corpus").to_json(corpus)
    options = ("--config", "sample", "--corpus", corpus, "--k", "5", "--json")
    own = json.loads(run("leaderboard", "fastbook", trec, *options))
    assert [(row["system"], row["metric"]) for row in own] == [("fts", "recall@5")]


def test_systems_on_other_questions_are_ranked_among_each_other() -> None:
    text = run("leaderboard", "fanoutqa", *ANSWERS[:2], *SAMPLE)
    assert "published scores are for other questions (test): systems on sample are ranked only" in " ".join(
        text.split()
    )
    text = run("leaderboard", "fanoutqa")
    assert "other questions" not in text and "  score " in text and "  metric " not in text


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


@pytest.mark.parametrize("option", ["--test", "--correction"])
def test_an_unknown_test_is_said_before_files_are_scored(option: str) -> None:
    result = CliRunner().invoke(app, ["compare", "fanoutqa", "nosuch.jsonl", "none.jsonl", option, "x"])
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(f"unknown {option.removeprefix('--')} 'x'; allowed: ")
