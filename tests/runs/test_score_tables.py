"""Scores of any tool in a table, and clusters of questions, in ``score`` and ``compare``."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import qabench
from qabench.cli import app
from qabench.errors import InputError
from qabench.runs.score_tables import read_scores
from qabench.stats import mean_interval, paired_test


def table(path: Path, passages: int = 40, seed: int = 0) -> Path:
    """Two systems on five questions for each passage, whose questions are all hard or all easy."""
    rng = np.random.default_rng(seed)
    lines = ["qid,model,passage,topic,correct,f1"]
    for passage in range(passages):
        hard = rng.random()
        for question in range(5):
            for model, rate in (("big", 0.7), ("small", 0.5)):
                right = int(hard < rate) if rng.random() < 0.8 else int(rng.random() < rate)
                lines.append(f"q{passage}-{question},{model},p{passage},t{passage % 2},{right},{right / 2}")
    path.write_text("\n".join(lines) + "\n")
    return path


COLUMNS = ("--id", "qid", "--system", "model")


def of_command(*words: str) -> Any:
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_scores_are_selected_and_a_benchmark_is_refused(tmp_path: Path) -> None:
    path = str(table(tmp_path / "scores.csv"))
    words = ["score", path, "--score", "correct", "--score", "f1", *COLUMNS]
    assert set(of_command(*words, "--scores", "f1")["evaluations"][0]["scores"]) == {"f1"}
    unknown = CliRunner().invoke(app, [*words, "--scores", "nope"]).exception
    assert isinstance(unknown, InputError) and "no score 'nope'" in str(unknown)
    for more in (["score", "felm", *words[1:]], [*words, "--benchmark", "felm"]):
        refused = CliRunner().invoke(app, more).exception
        assert isinstance(refused, InputError) and "FELM does not compute; leave the benchmark out" in str(refused)


def test_score_reads_a_table(tmp_path: Path) -> None:
    path = table(tmp_path / "scores.csv")
    document = of_command("score", str(path), "--score", "correct", "--score", "f1", *COLUMNS)
    big, small = document["evaluations"]
    assert (big["model"], small["model"]) == ("big", "small")
    assert set(big["scores"]) == {"correct", "f1"} and big["n"]["correct"] == 200
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    values = [float(row[4]) for row in rows if row[1] == "big"]
    assert big["scores"]["correct"] == pytest.approx(np.mean(values))


def test_intervals_are_over_clusters(tmp_path: Path) -> None:
    path = table(tmp_path / "scores.csv")
    (big, _) = read_scores(path, ["correct"], id="qid", system="model", cluster="passage")
    (alone, _) = read_scores(path, ["correct"], id="qid", system="model")
    values = [record.scores["correct"] for record in big.records]
    clusters = [record.cluster for record in big.records]
    expected = mean_interval(values, clusters=clusters)
    score = big["correct"]
    assert (score.value, score.low, score.high) == pytest.approx((expected.mean, expected.low, expected.high))
    assert score.n == 200 and alone["correct"].value == pytest.approx(score.value)
    width, width_alone = (each["correct"].high - each["correct"].low for each in (big, alone))  # type: ignore[operator]
    assert width > 1.3 * width_alone


def test_tests_swap_whole_clusters(tmp_path: Path) -> None:
    path = table(tmp_path / "scores.csv")
    words = ("compare", str(path), "--score", "correct", *COLUMNS)
    (clustered,) = of_command(*words, "--cluster", "passage")["comparisons"][0]["pairs"]
    (alone,) = of_command(*words)["comparisons"][0]["pairs"]
    systems = read_scores(path, ["correct"], id="qid", system="model", cluster="passage")
    first, second = ([record.scores["correct"] for record in each.records] for each in systems)
    expected = paired_test(first, second, clusters=[record.cluster for record in systems[0].records])
    assert clustered["difference"] == pytest.approx(expected.interval.mean) == pytest.approx(alone["difference"])
    assert (clustered["low"], clustered["high"]) == pytest.approx((expected.interval.low, expected.interval.high))
    assert clustered["p"] == expected.p_value != alone["p"]
    assert clustered["standard_error"] > alone["standard_error"] and clustered["n"] == 200


def test_a_grouping_is_a_cluster_too(tmp_path: Path) -> None:
    path = table(tmp_path / "scores.csv")
    words = ("compare", str(path), "--score", "correct", *COLUMNS, "--by", "topic")
    document = of_command(*words)
    assert {each.get("group") for each in document["comparisons"]} == {None, "t0", "t1"}
    result = CliRunner().invoke(app, [*words, "--cluster", "nope"])
    assert "lacks the column 'nope'" in str(result.exception)


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "tsv"])
def test_tables_have_several_formats(tmp_path: Path, kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(table(tmp_path / "scores.csv"))
    path = tmp_path / f"scores.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="\t", index=False)
    first = read_scores(tmp_path / "scores.csv", ["correct"], id="qid", system="model")
    again = read_scores(path, ["correct"], id="qid", system="model")
    assert [each["correct"].value for each in first] == [each["correct"].value for each in again]


def test_files_are_systems_and_repeated_ids_samples(tmp_path: Path) -> None:
    for name, scores in (("a", "1,0,1,1"), ("b", "0,0,1,0")):
        rows = [f"q{place // 2},{value}" for place, value in enumerate(scores.split(","))]
        (tmp_path / f"{name}.csv").write_text("id,score\n" + "\n".join(rows))
    systems = [read_scores(tmp_path / f"{name}.csv", ["score"])[0] for name in "ab"]
    assert [each.model for each in systems] == ["a", "b"]
    assert [record.epoch for record in systems[0].records] == [1, 2, 1, 2]
    assert systems[0]["score"].n == 2 and systems[0]["score"].value == 0.75
    assert qabench.compare(None, None, systems, "score").pairs[0].n == 2


def test_empty_scores_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,score\nq1,yes\nq2,\nq3,no\n")
    (evaluation,) = read_scores(tmp_path / "a.csv", ["score"])
    assert evaluation["score"].value == 0.5 and evaluation["score"].left_out == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("id,score\nq1,good\n", "line 2: the column 'score' is 'good'; allowed: a number"),
        ("id,score\n,1\n", "line 2: the column 'id' is empty"),
        ("id,value\nq1,1\n", "line 2 lacks the column 'score'"),
        ("id,score\nq1,\n", "the column 'score' has no score of a"),
        ("id,score\n", "has no rows"),
    ],
)
def test_bad_tables_are_named(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=error):
        read_scores(tmp_path / "a.csv", ["score"])


def lm_eval_samples(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(60):
        lines.append(
            {
                "doc_id": number,
                "doc": {"question": f"Q{number}", "passage": f"A long passage number {number // 4} " * 5},
                "target": "x",
                "filtered_resps": ["x"],
                "filter": "none",
                "metrics": ["acc"],
                "acc": float(rng.random() < 0.5),
                "doc_hash": f"h{number}",
            }
        )
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_logs_of_other_harnesses_are_clustered_by_a_field(tmp_path: Path) -> None:
    paths = [str(lm_eval_samples(tmp_path / f"samples_{name}.jsonl", seed)) for seed, name in enumerate("ab")]
    (document,) = of_command("score", paths[0], "--cluster", "passage")["evaluations"]
    (alone,) = of_command("score", paths[0])["evaluations"]
    assert document["scores"] == alone["scores"] and document["intervals"] != alone["intervals"]
    pairs = of_command("compare", *paths, "--cluster", "passage")["comparisons"][0]["pairs"]
    assert pairs[0]["p"] != of_command("compare", *paths)["comparisons"][0]["pairs"][0]["p"]
    result = CliRunner().invoke(app, ["score", paths[0], "--cluster", "nope"])
    assert "no question has the field 'nope'" in str(result.exception)


def test_a_system_needs_a_score(tmp_path: Path) -> None:
    path = table(tmp_path / "scores.csv")
    result = CliRunner().invoke(app, ["compare", str(path), "--system", "model"])
    assert "--system model needs --score" in str(result.exception)


def test_a_table_of_several_systems_is_not_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("id,system,s\n1,A,0.5\n1,B,0.7\n2,A,0.4\n2,B,0.9\n")
    arguments = ["compare", str(path), str(path), "--score", "s", "--system", "system"]
    printed = CliRunner().invoke(app, arguments)
    assert isinstance(printed.exception, InputError)
    assert "the file was given twice" in str(printed.exception)


def test_a_sentence_about_all_groups_has_no_number_of_one(tmp_path: Path) -> None:
    rows = ["id,system,s,cluster"]
    for number in range(12):
        rows += [f"{number},A,0.{number % 7},c{number // 2}", f"{number},B,0.{number % 5},c{number // 2}"]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(rows))
    options = ["--score", "s", "--system", "system", "--cluster", "cluster"]
    printed = CliRunner().invoke(app, ["compare", str(path), *options]).stdout
    assert "randomization test over 6 clusters of questions, two-sided" in printed
    (row, *_) = read_scores(path, ["s"], system="system", cluster="cluster")
    groups = [replace(record, groups={"half": (str(int(record.id) // 8),)}) for record in row.records]
    compared = qabench.compare([replace(row, records=groups, path=name) for name in "ab"], by=["half"])
    (of_groups,) = [table for table in compared.tables() if "half" in table.columns and "pair" in table.columns]
    assert "randomization test over clusters of questions, two-sided" in of_groups.notes[-1]
