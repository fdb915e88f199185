"""``qabench sample``: what people should label; ``qabench plan``: how many questions a comparison needs."""

import csv
import json
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_runs import evaluation_of, stub
from typer.testing import CliRunner

import qabench
from qabench.cli import app
from qabench.errors import InputError
from qabench.evaluation.records import MISSING
from qabench.runs.human import read_labels, with_human
from qabench.runs.planning import plan
from qabench.runs.sampling import sample
from qabench.stats import paired_test
from qabench.stats.power import detectable, paired_deviation, questions_needed


def filled(text: str, truth: np.ndarray) -> dict[str, float]:
    return {row["id"]: truth[int(row["id"][1:])] for row in csv.DictReader(text.splitlines())}


def test_samples_are_random_and_the_same_for_a_seed() -> None:
    evaluation = evaluation_of([1, 0] * 100)
    first, again, other = (sample([evaluation], 50, seed=seed).as_csv() for seed in (0, 0, 1))
    assert first == again != other
    rows = list(csv.DictReader(first.splitlines()))
    assert len(rows) == 50 and list(rows[0]) == ["id", "question", "reference", "answer", "label"]
    assert all(row["label"] == "" for row in rows) and rows[0]["question"] == f"Question {rows[0]['id'][1:]}"
    # In the order of the questions, and not only the first ones.
    numbers = [int(row["id"][1:]) for row in rows]
    assert numbers == sorted(numbers) and max(numbers) > 150


def test_a_filled_sample_corrects_the_judge(tmp_path: Path) -> None:
    truth = (np.random.default_rng(1).random(800) < 0.3).astype(float)
    evaluation = evaluation_of(stub(truth, 0.95, 0.6, 2))
    (tmp_path / "labels.csv").write_text(sample([evaluation], 120).as_csv())
    rows = list(csv.DictReader((tmp_path / "labels.csv").read_text().splitlines()))
    with (tmp_path / "labels.csv").open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "label": int(truth[int(row["id"][1:])])} for row in rows)
    (result,), notes = with_human([evaluation], tmp_path / "labels.csv")
    interval = result.corrections[0].result.interval
    assert notes == [] and interval.low < truth.mean() < interval.high  # type: ignore[operator]


def test_stratified_samples_have_weights(tmp_path: Path) -> None:
    verdicts = [1.0] * 900 + [0.0] * 100
    result = sample([evaluation_of(verdicts)], 80, stratify="verdict")
    rows = list(csv.DictReader(result.as_csv().splitlines()))
    of_wrong = [row for row in rows if int(row["id"][1:]) >= 900]
    assert len(rows) == 80 and len(of_wrong) == 40
    assert {row["weight"] for row in of_wrong} == {"2.5"}
    (tmp_path / "labels.csv").write_text(result.as_csv().replace(",\n", ",1\n"))
    labels = read_labels(tmp_path / "labels.csv")
    assert sum(label.weight for label in labels.by_item.values()) == pytest.approx(1000)


def test_the_same_items_are_drawn_of_all_systems() -> None:
    systems = [evaluation_of([1, 0] * 50, "a"), evaluation_of([0, 1] * 50, "b")]
    rows = list(csv.DictReader(sample(systems, 10).as_csv().splitlines()))
    of_system = {name: [row["id"] for row in rows if row["system"] == name] for name in "ab"}
    assert of_system["a"] == of_system["b"] and len(of_system["a"]) == 10


def test_answers_that_are_missing_have_their_label() -> None:
    evaluation = evaluation_of([1, 0, 0, 1])
    records = [replace(record, status=MISSING, answer=None) for record in evaluation.records]
    result = sample([replace(evaluation, records=[*evaluation.records[:2], *records[2:]])], 4)
    assert [row["label"] for row in result.rows] == ["", "", "0", "0"]
    assert "2 rows have no answer, and the label 0" in result.notes


def test_cells_are_no_formulas() -> None:
    evaluation = evaluation_of([1, 0])
    records = [replace(record, answer="=cmd|' /C calc'!A0") for record in evaluation.records]
    result = sample([replace(evaluation, records=records)], 2)
    assert all(row["answer"].startswith("'=") for row in result.rows)


def test_the_expected_width_is_said() -> None:
    widths = {n: sample([evaluation_of([1, 0] * 200)], n).widths for n in (50, 200)}
    assert all(widths[50][what] > widths[200][what] for what in widths[50])
    nothing, good = widths[50].values()
    assert nothing > good
    truth = np.tile([1.0, 0.0], 200)
    evaluation = evaluation_of(np.random.default_rng(0).permutation(truth).tolist())
    (result,), _ = with_human([evaluation], filled(sample([evaluation], 50).as_csv(), truth))
    interval = result.corrections[0].result.interval
    assert interval.high - interval.low == pytest.approx(nothing, rel=0.15)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"labels": 9}, "--labels is 9; allowed: 2 to 4"),
        ({"labels": 2, "score": "nope"}, "no judged score 'nope'"),
        ({"labels": 2, "stratify": "color"}, "no grouping 'color'"),
        ({"labels": 3, "stratify": "verdict"}, "--labels is 3; 2 groups need at least 4"),
    ],
)
def test_bad_samples_are_named(arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=error):
        sample([evaluation_of([1, 0, 1, 0])], **arguments)


def test_questions_needed_inverts_detectable() -> None:
    for is_binary in (False, True):
        for difference in (0.01, 0.03, 0.2):
            n = questions_needed(0.5, difference, is_binary=is_binary)
            assert detectable(0.5 / sqrt(n), n, is_binary=is_binary) <= difference
            assert detectable(0.5 / sqrt(n - 1), n - 1, is_binary=is_binary) > difference
    assert questions_needed(0.5, 0.05, power=0.95) > questions_needed(0.5, 0.05, power=0.8)
    with pytest.raises(InputError, match="the power is 1"):
        questions_needed(0.5, 0.05, power=1)
    with pytest.raises(InputError, match="the difference is 0"):
        questions_needed(0.5, 0)


def test_the_planned_number_has_the_power() -> None:
    """Independent 0/1 scores of 0.7 and 0.6: the test finds the difference in about 80 % of runs."""
    n = questions_needed(paired_deviation(0.7, 0.6, 0), 0.1, is_binary=True)
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(200):
        first, second = rng.random(n) < 0.7, rng.random(n) < 0.6
        found += paired_test(first.astype(float), second.astype(float), resamples=500).p_value < 0.05
    assert 0.72 <= found / 200 <= 0.9


def of_command(*words: str) -> Any:
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def felm_files(folder: Path) -> list[str]:
    paths = []
    for name, accuracy in (("a", 0.9), ("b", 0.6)):
        rng = np.random.default_rng(len(paths))
        lines = []
        for each in qabench.benchmark("felm").load("sample").rows:
            verdicts = [bool(label) if rng.random() < accuracy else not label for label in each.row["labels"]]
            lines.append(json.dumps({"id": each.id, "labels": verdicts}))
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
        paths.append(str(folder / f"{name}.jsonl"))
    return paths


def test_plans_of_systems_use_the_variance_of_compare(tmp_path: Path) -> None:
    files = felm_files(tmp_path)
    words = ("--config", "sample", "--score", "balanced_accuracy")
    document = of_command("plan", "felm", "--difference", "0.1", "--from", *files, *words)
    comparison = qabench.compare("felm", "sample", files, "balanced_accuracy")
    (pair,) = comparison.pairs
    (requirement,) = document["requirements"]
    assert requirement["deviation"] == pytest.approx(pair.difference.interval.standard_error * sqrt(pair.n))
    if pair.detectable is not None:
        assert requirement["detectable"] == pytest.approx(pair.detectable)
    assert requirement["questions"] == questions_needed(requirement["deviation"], 0.1)
    assert any("further epochs: unknown" in note for note in document["notes"])


def test_epochs_reduce_the_variance_within_questions() -> None:
    rng = np.random.default_rng(0)
    systems = []
    for name in "ab":
        one = evaluation_of([0.0] * 200, name)
        records = []
        for record in one.records:
            for epoch in (1, 2, 3, 4):
                records.append(replace(record, epoch=epoch, scores={"match": float(rng.random() < 0.5)}))
        systems.append(replace(one, records=records, expected=len(records)))
    result = plan("", 0.05, systems=systems)
    needed = {each.epochs: each.questions for each in result.requirements}
    # All variance is within questions: twice as many epochs halve the questions.
    assert needed[1] == pytest.approx(2 * needed[2], rel=0.25)
    assert needed[2] == pytest.approx(2 * needed[4], rel=0.25)


def test_plans_of_published_scores_say_what_they_assume(mirror: Path) -> None:
    document = of_command("plan", "fanoutqa", "--difference", "0.05", "--config", "sample")
    independent, correlated = document["requirements"]
    assert independent["questions"] > correlated["questions"] > 100
    assert independent["detectable"] > 0.05
    result = CliRunner().invoke(app, ["plan", "felm", "--difference", "0.05"])
    assert "f1 is not a mean over questions" in str(result.exception)
    assert "--from A.jsonl B.jsonl" in str(result.exception)


def test_the_commands_take_the_options_of_scoring(tmp_path: Path, mirror: Path) -> None:
    rows = qabench.benchmark("expertqa").load("random", None, "validation").rows[:9]
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for number, path in enumerate(paths):
        lines = []
        for row in rows:
            claims = [
                {"claim": claim["claim_string"], "evidence": claim["evidence"], "label": "YN"[number and place % 2]}
                for place, claim in enumerate(row.row["answers"][0]["claims"])
            ]
            lines.append(json.dumps({"id": row.id, "claims": claims}) + "\n")
        path.write_text("".join(lines))
    options = ("--config", "random", "--split", "validation")
    out = str(tmp_path / "labels.csv")
    document = of_command("sample", "expertqa", str(paths[0]), *options, "--labels", "9", "--output", out)
    assert document["labels"] == 9 and document["score"] == "supported"
    words = ("plan", "expertqa", "--difference", "0.1", *options)
    planned = of_command(*words, "--from", str(paths[0]), "--from", str(paths[1]), "--score", "autoais_macro")
    assert planned["requirements"][0]["questions"] > 0
    result = CliRunner().invoke(app, list(words))
    assert str(result.exception) == "split: scoring options, which have no effect without --from"


def test_the_command_writes_a_table(tmp_path: Path) -> None:
    path, out = felm_files(tmp_path)[0], tmp_path / "labels.csv"
    words = ("sample", "felm", path, "--config", "sample", "--labels", "5", "--output", str(out))
    document = of_command(*words)
    assert document["labels"] == 5 and set(document["expected_widths"].values())
    with out.open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 5
