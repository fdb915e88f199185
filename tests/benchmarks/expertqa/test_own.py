"""``qabench score expertqa`` of one's own claims with labels and fact scores of one's own judge."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest
from claim_lines import claim, command, written

import qabench
from qabench.benchmarks import benchmark
from qabench.benchmarks.expertqa.labels import share_supported, supported_outcomes
from qabench.errors import InputError

Row = dict[str, Any]


def judged_rows(answers: int = 12) -> list[Row]:
    """Return answers with one to four claims, some without evidence, with random labels."""
    choice = random.Random(3)
    rows = []
    for number in range(answers):
        claims = [
            claim(f"Fact {number} {i}.", *["x"] * choice.randrange(2), label=choice.choice("YN"))
            for i in range(choice.randrange(1, 5))
        ]
        rows.append({"id": f"mine-{number}", "claims": claims})
    return rows


@pytest.mark.parametrize("arguments", [(), ("--config", "own")])
def test_own_labels_are_scored_as_attribute_prints_them(
    arguments: tuple[str, ...], tmp_path: Path, labeler: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, out = judged_rows(), tmp_path / "scores.json"
    file = written(tmp_path / "mine.jsonl", *rows)
    assert command("score", "expertqa", file, *arguments, "-o", out) == 0
    text = " ".join("".join(capsys.readouterr()).split())
    assert "no expert has judged these claims, so all of them count" in text and "not official" in text
    (document,) = json.loads(out.read_text())["evaluations"]
    shares = share_supported(supported_outcomes(rows))
    for score, name in (("autoais_macro", "macro"), ("autoais_micro", "micro")):
        assert document["scores"][score] == pytest.approx(shares[name])
        interval = document["intervals"][score]
        assert interval["low"] < shares[name] < interval["high"] and document["deviations"][score]
    assert document["scores"]["evidence"] == pytest.approx(
        sum(bool(own["evidence"]) for row in rows for own in row["claims"]) / shares["claims"]
    )
    assert document["config"] == "own" and not document["problems"]
    assert command("score", "expertqa", file, *arguments, "--strict") == 2
    assert command("expertqa", "attribute", file, "-o", tmp_path / "labels.jsonl") == 0
    assert f"{document['scores']['autoais_macro']:.4f}" in capsys.readouterr().out


def test_intervals_of_own_labels_are_over_answers() -> None:
    # Four claims of one answer are not four answers.
    apart = [{"id": f"m{n}", "claims": [claim("It is.", "x", label="YN"[n % 2])]} for n in range(32)]
    together = [
        {"id": f"m{n}", "claims": [claim(f"It is {i}.", "x", label="YN"[n % 2]) for i in range(4)]} for n in range(8)
    ]
    widths = []
    for rows in (apart, together):
        score = qabench.evaluate_predictions("expertqa", None, rows)["autoais_micro"]
        assert (score.value, score.n) == (0.5, 32)
        widths.append(score.high - score.low)
    assert widths[1] > 1.5 * widths[0]


def test_own_fact_scores_and_systems(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "system": system, "claims": [claim("It is.", fact_score=value, fact_score_readable=readable)]}
        for n in range(4)
        for system, value, readable in (("a", 1.0, None if n else 0.5), ("b", 0.0, 0.0))
    ]
    out = tmp_path / "scores.json"
    assert command("score", "expertqa", written(tmp_path / "mine.jsonl", *rows), "-o", out) == 0
    scores = {each["model"]: each["scores"] for each in json.loads(out.read_text())["evaluations"]}
    assert scores["a"] == {"fact_score": 1.0, "fact_score_readable": 0.5} | scores["a"]
    assert scores["b"] == {"fact_score": 0.0, "fact_score_readable": 0.0} | scores["b"]
    assert "autoais_macro" not in scores["a"]


@pytest.mark.parametrize(
    ("config", "change"),
    [
        ("sample", {}),  # a config that was asked for
        (None, {"id": "4135f1855880"}),  # a question of the sample
        (None, {"claims": [claim("It is.", "x")]}),  # no judge
    ],
)
def test_other_files_are_not_scored_by_themselves(config: str | None, change: Row) -> None:
    assert benchmark("expertqa").load("sample").rows[0].id == "4135f1855880"
    rows = [{"id": "mine", "claims": [claim("It is.", "x", label="Y")]} | change]
    with pytest.raises((InputError, qabench.errors.SourceError)):
        qabench.evaluate_predictions("expertqa", config, rows)


def test_the_readable_fact_score_is_beside_the_official_one() -> None:
    rows = []
    for question in benchmark("expertqa").load("sample").rows:
        claims = [
            {"claim": own["claim_string"], "evidence": own["evidence"], "fact_score": 1.0, "fact_score_readable": 0.25}
            for own in question.row["answers"][0]["claims"]
        ]
        rows.append({"id": question.id, "claims": claims})
    rows[0]["claims"][0]["fact_score_readable"] = None
    evaluation = qabench.evaluate_predictions("expertqa", "sample", rows)
    both = evaluation["fact_score"], evaluation["fact_score_readable"]
    assert [score.value for score in both] == [1.0, 0.25] and both[1].n == both[0].n - 1
    assert "not a score of the benchmark's authors" in evaluation.deviations(both[1])
    rows[0]["claims"][0]["fact_score_readable"] = 2
    problems = qabench.evaluate_predictions("expertqa", "sample", rows).problem_sentences()
    assert any("fact_score_readable is 2" in text for text in problems)


def test_no_line_of_own_claims_replaces_another() -> None:
    rows = [{"id": "1", "claims": [claim("It is.", "x", label=label)]} for label in (1, 0, 0, 1)]
    evaluation = qabench.evaluate_predictions("expertqa", None, rows)
    rows = [{"claims": [claim("It is.", label=label)]} for label in "YNNY"]
    assert evaluation["autoais_macro"].value == share_supported(supported_outcomes(rows))["macro"]
    assert len(evaluation.records) == 4 and not evaluation.problems


def test_claims_in_the_cells_of_a_table(tmp_path: Path, labeler: Any) -> None:
    rows = judged_rows()
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("id", "claims"), *[(row["id"], json.dumps(row["claims"])) for row in rows]])
    evaluation = qabench.evaluate_predictions("expertqa", None, path)
    assert evaluation["autoais_macro"].value == pytest.approx(share_supported(supported_outcomes(rows))["macro"])
    assert command("expertqa", "attribute", path, "-o", tmp_path / "labels.jsonl") == 0
    path.write_text('id,claims\n1,"[1"\n')
    with pytest.raises(InputError, match="nothing to score"):
        qabench.evaluate_predictions("expertqa", "own", path)


def test_unlabeled_claims_without_evidence_are_counted() -> None:
    labeled, unlabeled = claim("It is.", label="Y"), claim("It was.")
    for claims, expected in (([labeled, unlabeled], 1), ([labeled], 0)):
        evaluation = qabench.evaluate_predictions("expertqa", "own", [{"id": "1", "claims": claims}])
        found = [problem for problem in evaluation.problems if "without a label: 1 (they count as N)" in problem]
        assert len(found) == expected


def test_the_reason_is_named_if_no_line_is_usable() -> None:
    rows = [{"id": "1", "claims": [claim("It is.", "x", fact_score=1.5)]}]
    with pytest.raises(InputError, match=r"nothing to score in .*unusable predictions: 1 \(1 \(line 1\): .*1\.5"):
        qabench.evaluate_predictions("expertqa", "own", rows)
