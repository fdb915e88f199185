"""Files with several systems and samples: each is scored by itself, in any order of the lines."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from claim_lines import command, written

import qabench
from qabench.benchmarks import benchmark
from qabench.errors import InputError

Row = dict[str, Any]
# system -> the label of all claims in each of its samples
LABELS = {"a": ["Y", "N"], "b": ["Y", "Y"], "c": ["N", "N"]}


def labeled(label: str, **fields: Any) -> list[Row]:
    """Return the annotated claims of the sample, all with this label."""
    rows = []
    for question in benchmark("expertqa").load("sample").rows:
        claims = [
            {"claim": claim["claim_string"], "evidence": claim["evidence"], "label": label}
            for answer in question.row["answers"]
            for claim in answer["claims"]
        ]
        rows.append({"id": question.id, "claims": claims, **fields})
    return rows


def file_of_systems() -> list[Row]:
    rows = [
        row
        for system, samples in LABELS.items()
        for number, label in enumerate(samples)
        for row in labeled(label, system=system, sample=number)
    ]
    random.Random(0).shuffle(rows)
    return rows


def scores(*arguments: object, file: Path) -> list[Row]:
    out = file.with_name("scores.json")
    assert command("score", "expertqa", *arguments, "--config", "sample", "-o", out) == 0
    document = json.loads(out.read_text())
    evaluations: list[Row] = document["evaluations"]
    return evaluations


def test_systems_and_samples_of_a_file_are_scored_by_themselves(tmp_path: Path) -> None:
    file = written(tmp_path / "all.jsonl", *file_of_systems())
    evaluations = scores(file, file=file)
    values = {each["model"]: each["scores"]["autoais_micro"] for each in evaluations}
    assert values == {"a": 0.5, "b": 1.0, "c": 0.0}
    n = len(labeled("Y"))
    for each in evaluations:
        assert each["counts"]["records"] == 2 * n
        assert not [text for text in each["problems"] if "replaced" in text or "without a prediction" in text]
    out = tmp_path / "comparison.json"
    assert command("compare", "expertqa", file, "--config", "sample", "--scores", "autoais_micro", "-o", out) == 0
    (comparison,) = json.loads(out.read_text())["comparisons"]
    assert {each["system"]: each["mean"] for each in comparison["systems"]} == values
    assert [(pair["first"], pair["second"]) for pair in comparison["pairs"]] == [("b", "a"), ("b", "c"), ("a", "c")]


def test_each_part_equals_a_file_of_its_own(tmp_path: Path) -> None:
    rows = [row for row in file_of_systems() if row["sample"] == 0]
    together = scores(written(tmp_path / "all.jsonl", *rows), file=tmp_path / "all.jsonl")
    for each in together:
        own = written(tmp_path / f"{each['model']}.jsonl", *[row for row in rows if row["system"] == each["model"]])
        (alone,) = scores(own, file=own)
        for name in ("scores", "intervals", "n", "signatures", "counts", "problems"):
            assert each[name] == alone[name], name


@pytest.mark.parametrize("joined", [True, False])
def test_samples_in_files_of_several_systems_stay_apart(joined: bool, tmp_path: Path) -> None:
    files = [
        written(tmp_path / f"{number}.jsonl", *[row for row in file_of_systems() if row["sample"] == number])
        for number in (0, 1)
    ]
    arguments = [",".join(map(str, files))] if joined else [*files, "--samples"]
    evaluations = scores(*arguments, file=files[0])
    values = {each["model"]: each["scores"]["autoais_micro"] for each in evaluations}
    assert values == {"a": 0.5, "b": 1.0, "c": 0.0}
    assert {each["counts"]["records"] for each in evaluations} == {2 * len(labeled("Y"))}


def test_samples_of_one_system_are_one_evaluation(tmp_path: Path) -> None:
    rows = [row for row in file_of_systems() if row["system"] == "a"]
    evaluation = qabench.evaluate_predictions("expertqa", "sample", rows)
    assert evaluation["autoais_micro"].value == 0.5
    assert sorted({record.epoch for record in evaluation.records}) == [1, 2]
    # Numbers that run through the whole file are samples, too.
    numbered = [row | {"sample": number} for number, row in enumerate(rows)]
    again = qabench.evaluate_predictions("expertqa", "sample", numbered)
    assert len(again.records) == len(rows) and again["autoais_micro"].value == 0.5


def test_python_names_the_systems_of_a_file() -> None:
    with pytest.raises(InputError, match=r"of 3 systems for the same ids \(.*\"system\" at a time"):
        qabench.evaluate_predictions("expertqa", "sample", file_of_systems())


def test_odd_files_of_systems(tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    rows = labeled("Y", system="a") + labeled("N", system="b")
    # One answer per question: the systems of the dataset's own answers are one file.
    one_each = [row | {"system": str(number % 3)} for number, row in enumerate(labeled("Y"))]
    assert len(scores(written(file, *one_each), file=file)) == 1
    # Unknown ids stop no other system, and lines that repeat everything are named.
    odd = [*rows, rows[0], {"id": "x", "claims": [], "system": "c"}, {"id": "x", "claims": [], "system": "a"}]
    evaluations = scores(written(file, *odd), file=file)
    assert [each["model"] for each in evaluations] == ["a", "b"]
    assert any("systems without a prediction for these questions: 1 (c)" in text for text in evaluations[1]["problems"])
    assert any("replaced by a later line: 1" in text for text in evaluations[0]["problems"])
    # A system without a name has the file's.
    nameless = [{name: value for name, value in row.items() if value != "b"} for row in rows]
    assert [each["model"] for each in scores(written(file, *nameless), file=file)] == ["a", "all"]
