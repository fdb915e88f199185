"""Scores of a judge corrected by labels of people: tables, JSON, commands, Python, and the labels of datasets."""

import json
from collections.abc import Sequence
from dataclasses import replace
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


def labels_file(path: Path, truth: Sequence[float], count: int, seed: int = 0) -> Path:
    chosen = np.random.default_rng(seed).permutation(len(truth))[:count]
    path.write_text("id,label\n" + "".join(f"q{number},{int(truth[number])}\n" for number in sorted(chosen)))
    return path


def test_the_correction_finds_the_truth(tmp_path: Path) -> None:
    """A judge that calls 40 % of the wrong answers right, with a true accuracy of 0.3."""
    truth = (np.random.default_rng(1).random(1000) < 0.3).astype(float)
    evaluation = evaluation_of(stub(truth, 0.95, 0.6, 2))
    (result,), notes = with_human([evaluation], labels_file(tmp_path / "labels.csv", truth, 150))
    (correction,) = result.corrections
    assert notes == []
    assert evaluation["match"].value > 0.5  # the judge alone is far off
    interval = correction.result.interval
    assert interval.low is not None and interval.high is not None
    assert interval.low < truth.mean() < interval.high < evaluation["match"].value
    assert interval.mean == pytest.approx(truth.mean(), abs=0.08)
    assert correction.result.effective and correction.result.effective > 150
    assert result["match"].value == evaluation["match"].value  # the judge's score stays


def test_labels_by_id_are_read_like_those_in_a_file() -> None:
    labels = read_labels({"q1": "yes", "q2": 0, "q3": None, "q4": float("nan"), "q5": "1"})
    assert {id: label.value for (id, _), label in labels.by_item.items()} == {"q1": 1.0, "q2": 0.0, "q5": 1.0}
    with pytest.raises(InputError, match="the label of 'q1' is 'perhaps'; allowed: 1 or 0"):
        read_labels({"q1": "perhaps"})
    with pytest.raises(InputError, match="there are no labels"):
        read_labels({"q1": None})


def test_labels_of_a_score_are_used_without_a_system() -> None:
    truth = (np.random.default_rng(1).random(200) < 0.3).astype(float)
    labels = {f"match:q{number}": truth[number] for number in range(60)}
    (result,), notes = with_human([evaluation_of(stub(truth, 0.9, 0.7, 2))], labels)
    assert result.corrections[0].result.labeled == 60 and notes == []


def test_tables_and_json_say_that_it_is_not_official(tmp_path: Path) -> None:
    truth = (np.random.default_rng(1).random(200) < 0.3).astype(float)
    (result,), _ = with_human([evaluation_of(stub(truth, 0.9, 0.7, 2))], labels_file(tmp_path / "l.csv", truth, 60))
    document = result.as_dict()["corrected"]["match"]
    assert document["official"] is False and document["labeled"] == 60 and document["n"] == 200
    assert document["low"] < document["corrected"] < document["high"] and document["judge"] == result["match"].value
    text = str(result)
    assert "Corrected by labels of people" in text and "never official" in text
    assert evaluation_of([1, 0]).as_dict()["corrected"] == {}


def test_differences_are_corrected(tmp_path: Path) -> None:
    truth = {
        name: (np.random.default_rng(seed).random(600) < rate).astype(float)
        for name, seed, rate in (("a", 1, 0.7), ("b", 2, 0.5))
    }
    lines = ["id,system,label"]
    for name, values in truth.items():
        lines += [f"q{number},{name},{int(values[number])}" for number in range(0, 600, 4)]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(lines))
    # The judge prefers b: it accepts most of its wrong answers.
    verdicts = {"a": stub(truth["a"], 0.9, 0.95, 3), "b": stub(truth["b"], 0.95, 0.5, 4)}
    systems = {name: evaluation_of(values, name) for name, values in verdicts.items()}
    comparison = qabench.compare(None, None, systems, human=path)
    for text in (comparison.to_latex(), comparison.to_markdown()):
        assert "Differences corrected by labels of people" in text and "Corrected by labels of people" in text
    (pair,) = comparison.corrected
    assert pair.result.verdicts < 0 < pair.result.interval.low  # type: ignore[operator]
    assert pair.result.interval.mean == pytest.approx(truth["a"].mean() - truth["b"].mean(), abs=0.1)
    document = comparison.as_dict()["corrected"]
    assert document["pairs"][0]["official"] is False and set(document["systems"]) == {"a", "b"}
    assert "Differences corrected by labels of people" in str(comparison)
    assert qabench.compare(None, None, systems).corrected == ()


@pytest.mark.parametrize("text", ["1", "yes", "TRUE", "right", "Y", "1.0"])
def test_labels_have_several_forms(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels.csv").write_text(f"id,label,weight\na,{text},2\nb,no,\nc,,\n")
    labels = read_labels(tmp_path / "labels.csv").by_item
    assert {key[0]: (label.value, label.weight) for key, label in labels.items()} == {"a": (1, 2), "b": (0, 1)}
    rows = [{"id": "a", "label": text}, {"id": "b", "label": None}]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert [label.value for label in read_labels(tmp_path / "labels.jsonl").by_item.values()] == [1]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("id,label\na,maybe\n", "line 2: the label is 'maybe'; allowed: .*1 or 0"),
        ("id,label\na,\n", "has no labels"),
        ("id,label\na,1\na,0\n", "line 3: the item 'a' has another label above"),
        ("id,verdict\na,1\n", "line 2 lacks the column 'label'; it has 'id', 'verdict'"),
        ("id,label,weight\na,1,0\n", "line 2: the weight is '0'; allowed: a number above 0"),
        ("id,label\n", "has no rows"),
    ],
)
def test_bad_labels_are_named(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(InputError, match=error):
        read_labels(tmp_path / "labels.csv")


def test_labels_of_other_items_are_an_error_or_a_note(tmp_path: Path) -> None:
    evaluation = evaluation_of([1, 0, 1, 1])
    with pytest.raises(InputError, match=r"none of the 1 labels .* is of an item .* their ids are x"):
        with_human([evaluation], {"x": 1})
    (result,), notes = with_human([evaluation], {"q0": 1, "q1": 0, "x": 1})
    assert result.corrections[0].result.labeled == 2
    assert notes == [
        "the mapping of labels: labels of unknown items: 1 (x)",
        "match: only 2 labels; the intervals were tested in simulations with 50 or more",
    ]
    with pytest.raises(InputError, match="the dataset has no labels of people"):
        with_human([evaluation], "dataset")
    with pytest.raises(InputError, match="--human dataset:1; allowed"):
        with_human([evaluation], "dataset:1")


def labels_table(path: Path, evaluation: Any, **changed: str) -> Path:
    rows = [
        {"id": record.id, "answer": record.answer or "", "label": number % 2} | changed
        for number, record in enumerate(evaluation.records)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_labels_of_another_answer_are_not_used(tmp_path: Path) -> None:
    """A model was asked again after people had labeled its answers."""
    evaluation = evaluation_of([1, 0] * 20)
    records = [replace(record, answer=f"= {record.answer}\r\nand more") for record in evaluation.records]
    evaluation = replace(evaluation, records=records)
    same = labels_table(tmp_path / "same.jsonl", evaluation)
    # As a spreadsheet saves it.
    same.write_text(same.read_text().replace('"= ', "\"'= ").replace("\\r\\n", "\\n"))
    (result,), notes = with_human([evaluation], same)
    assert result.corrections[0].result.labeled == 40 and notes == []
    newer = replace(evaluation, records=[replace(records[0], answer="another answer"), *records[1:]])
    (result,), notes = with_human([newer], same)
    assert result.corrections[0].result.labeled == 39
    note = "labels that are not used, because their column answer differs from the answer of model: 1 (q0)"
    assert notes == [f"{same}: {note}"]
    other = labels_table(tmp_path / "other.jsonl", evaluation, answer="something else")
    with pytest.raises(InputError, match="their column answer differs from the answer of model"):
        with_human([evaluation], other)


def test_labels_of_several_systems_need_their_names(tmp_path: Path) -> None:
    first = evaluation_of([1, 0] * 20, "a")
    records = [replace(record, answer=f"{record.answer} too") for record in first.records]
    second = replace(evaluation_of([0, 1] * 20, "b"), records=records)
    labels = {f"q{number}": number % 2 for number in range(40)}
    with pytest.raises(InputError, match="the label of 'q0' could be of the answer of a or of b; say which in the col"):
        with_human([first, second], labels)
    # Equal answers have equal labels, and so have the segments that several evaluators judge.
    results, _ = with_human([first, replace(second, records=first.records)], labels)
    assert [each.corrections[0].result.labeled for each in results] == [40, 40]
    (tmp_path / "labels.csv").write_text("id,system,label\n q1 ,GPT,1\nq2,GPT,0\n")
    with pytest.raises(InputError, match="has labels of the systems GPT, and none of a"):
        with_human([first], tmp_path / "labels.csv")
    (tmp_path / "labels.csv").write_text("id,system,label\n q1 ,GPT,1\nx7,a,0\n")
    with pytest.raises(InputError, match=r"none of the 1 labels .* is of an item .* their ids are x7, those"):
        with_human([first], tmp_path / "labels.csv")


@pytest.mark.parametrize("labels", [{"q0": 100, "q1": 0}, {"q0": 1, "q1": -1}])
def test_labels_are_on_the_scale_of_the_verdicts(labels: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"the label of 'q[01]' is (100|-1); allowed: 0 to 1, as the verdicts"):
        with_human([evaluation_of([1, 0] * 20)], labels)


def test_labels_of_another_type_are_named() -> None:
    with pytest.raises(InputError, match="the labels are of the type list; allowed: a file, or a mapping"):
        with_human([evaluation_of([1, 0])], [1, 0])  # type: ignore[arg-type]


def test_corrections_are_over_clusters() -> None:
    """Five questions about each passage with equal labels are worth one."""
    rng = np.random.default_rng(3)
    truth = np.repeat((rng.random(80) < 0.5).astype(float), 5)
    evaluation = evaluation_of(stub(truth, 0.8, 0.8, 2))
    labels = {f"q{number}": truth[number] for number in range(200)}
    records = [replace(record, cluster=f"p{number // 5}") for number, record in enumerate(evaluation.records)]
    errors = []
    for each in (evaluation, replace(evaluation, records=records)):
        (result,), _ = with_human([each], labels)
        errors.append(result.corrections[0].result.interval.standard_error)
    assert errors[1] > 1.5 * errors[0]


def test_missing_answers_stay_in_the_mean() -> None:
    evaluation = evaluation_of([1, 1, 0, 0])
    records = [*evaluation.records[:3], replace(evaluation.records[3], status=MISSING, answer=None)]
    evaluation = replace(evaluation, records=records)
    (result,), _ = with_human([evaluation], {"q0": 1, "q1": 0, "q2": 0})
    assert result.corrections[0].result.n == 4
    assert [item.answered for item in result.corrections[0].score.items] == [True, True, True, False]


def scored(*words: str) -> Any:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    (evaluation,) = json.loads(result.stdout)["evaluations"]
    return evaluation


def felm_verdicts(path: Path) -> Path:
    rows = [
        {"id": each.id, "labels": [1] * len(each.row["labels"])}
        for each in qabench.benchmark("felm").load("sample").rows
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_labels_of_the_dataset_correct_an_evaluator(tmp_path: Path) -> None:
    """An evaluator that finds all segments factual: labels of all segments say how many are."""
    labels = [label for each in qabench.benchmark("felm").load("sample").rows for label in each.row["labels"]]
    path = str(felm_verdicts(tmp_path / "verdicts.jsonl"))
    document = scored("score", "felm", path, "--config", "sample", "--human", "--json")
    assert document["corrected"]["factual"]["judge"] == 1
    assert document["corrected"]["factual"]["corrected"] == pytest.approx(np.mean(labels))
    part = scored("score", "felm", path, "--config", "sample", "--human", "dataset:5", "--json")
    assert part["corrected"]["factual"]["labeled"] == 5
    evaluation = qabench.evaluate_predictions("felm", "sample", path, human="dataset")
    assert evaluation.corrections[0].result.interval.mean == document["corrected"]["factual"]["corrected"]
    without = scored("score", "felm", path, "--config", "sample", "--json")
    assert without["corrected"] == {} and without["scores"] == document["scores"]


def test_reports_have_the_corrected_scores(tmp_path: Path) -> None:
    path = str(felm_verdicts(tmp_path / "verdicts.jsonl"))
    out = tmp_path / "report"
    words = ["report", "felm", path, "--config", "sample", "-o", str(out), "--human"]
    assert CliRunner().invoke(app, words).exit_code == 0
    numbers = json.loads((out / "report.json").read_text())
    assert numbers["sections"][0]["runs"][0]["corrected"]["factual"]["official"] is False
    assert "Corrected by labels of people" in (out / "index.html").read_text()


def test_labels_of_some_systems_are_enough(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("id,system,label\n" + "".join(f"q{n},a,{n % 2}\n" for n in range(40)))
    systems = [evaluation_of([1, 0] * 30, "a"), evaluation_of([0, 1] * 30, "b")]
    (first, second), notes = with_human(systems, tmp_path / "labels.csv")
    assert first.corrections and not second.corrections
    reason = f"{tmp_path / 'labels.csv'} has labels of the systems a, and none of b"
    assert f"b is not corrected: {reason}" in notes
