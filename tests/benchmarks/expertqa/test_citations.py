"""Citation recall and precision as in ALCE, facts per answer and response ratio as in FActScore."""

import json
import random
import re
import sys
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from stand_ins import Labeler, no_weights

import qabench
from qabench.benchmarks.expertqa.citations import (
    EVIDENCE_LABELS,
    citation_columns,
    fact_columns,
    needs_evidence_labels,
    with_evidence_labels,
)
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.cli import main

Row = dict[str, Any]


def entails(pieces: list[str], words: str) -> bool:
    """A claim is entailed by pieces that have all its letters."""
    return set(words) <= set("".join(pieces))


def definition(claims: list[Row]) -> tuple[float, float]:
    """Return recall and precision as the paper defines them, with every judgment made."""
    recalled, precise, pieces = [], 0, 0
    for claim in claims:
        cited = claim["evidence"]
        recall = bool(cited) and entails(cited, claim["claim"])
        recalled.append(recall)
        for place in range(len(cited)):
            others = cited[:place] + cited[place + 1 :]
            irrelevant = not entails([cited[place]], claim["claim"]) and entails(others, claim["claim"])
            precise += recall and not irrelevant
        pieces += len(cited)
    return sum(recalled) / len(recalled), precise / pieces if pieces else 0.0


def labels(pairs: Any) -> list[str]:
    return ["Y" if evidence and entails(list(evidence), claim) else "N" for claim, evidence in pairs]


def test_recall_and_precision_equal_the_definition() -> None:
    drawn = random.Random(1)
    pieces = ["".join(each) for each in product("ab", "bc", "cd")]
    for _ in range(300):
        claims = []
        for _ in range(drawn.randint(1, 4)):
            claim = "".join(drawn.sample("abcd", drawn.randint(1, 3)))
            evidence = drawn.sample(pieces, drawn.randint(0, 4))
            claims.append({"claim": claim, "evidence": evidence, "label": labels([(claim, evidence)])[0]})
        (item,) = with_evidence_labels([{"id": "1", "claims": claims}], labels)
        for claim in item["claims"]:
            assert (EVIDENCE_LABELS in claim) == needs_evidence_labels(claim)
        columns = citation_columns(item["claims"], "N")
        assert (columns["citation_recall"], columns["citation_precision"]) == definition(claims)


def test_precision_needs_labels_of_each_piece() -> None:
    claim = {"claim": "c", "evidence": ["a", "b"], "label": "Y"}
    assert citation_columns([claim], "N") == {"citation_recall": 1.0}
    wrong = {**claim, EVIDENCE_LABELS: [{"alone": "Y"}]}  # of one piece
    assert citation_columns([wrong], "N") == {"citation_recall": 1.0}
    unlabeled = {"claim": "c", "evidence": ["a"], "label": None}
    single = {"claim": "c", "evidence": ["a"], "label": "Y"}
    assert citation_columns([single, unlabeled], "N") == {"citation_recall": 0.5, "citation_precision": 0.5}
    assert citation_columns([single, unlabeled], "exclude") == {"citation_recall": 1.0, "citation_precision": 1.0}
    assert citation_columns([], "N") == citation_columns([unlabeled], "exclude") == {}
    assert citation_columns([{**unlabeled, "evidence": []}], "N") == {"citation_recall": 0, "citation_precision": 0}


def test_facts_per_answer_and_response_ratio() -> None:
    claims = [
        {"claim": "c", "evidence": [], "fact_score": 0.5, "atomic_claims": ["a", "b"]},
        {"claim": "d", "evidence": [], "fact_score": None, "atomic_claims": []},
        {"claim": "e", "evidence": [], "fact_score": 1.0, "atomic_claims": ["x"]},
    ]
    assert fact_columns(claims, False) == {"responds": 1, "facts_per_answer": 3}
    assert fact_columns(claims, True) == fact_columns(claims[1:2], False) == fact_columns([], False) == {"responds": 0}
    assert fact_columns([{"claim": "c", "fact_score": 0.5}], False) == {}
    rows = []
    for number, question in enumerate(load_questions("sample").rows):
        own = claims if number < 4 else []
        rows.append({"id": question.id, "answer": "I don't know." if number == 0 else "c d e", "claims": own})
    scores = qabench.evaluate_predictions("expertqa", "sample", rows).scores()
    assert scores["response_ratio"].value == 3 / 8 and scores["facts_per_answer"].value == 3
    assert not scores["facts_per_answer"].spec.official and scores["facts_per_answer"].size == "3 answers"


def test_answers_without_labels_do_not_select_the_others() -> None:
    """Precision over the answers that need no further labels, and a response ratio without facts,
    would mislead.
    """
    single = {"claim": "c", "evidence": ["a"], "label": "Y", "fact_score": 1.0}
    double = {"claim": "c", "evidence": ["a", "b"], "label": "Y"}
    rows = []
    for number, question in enumerate(load_questions("sample").rows):
        claims = [[double, single], [single], []][min(number, 2)]
        rows.append({"id": question.id, "answer": "c.", "claims": claims})
    evaluation = qabench.evaluate_predictions("expertqa", "sample", rows)
    assert "citation_recall" in evaluation.scores() and "citation_precision" not in evaluation.scores()
    assert "response_ratio" not in evaluation.scores() and not any("precision" in text for text in evaluation.problems)
    rows[1]["claims"] = [{**double, EVIDENCE_LABELS: [{"alone": "Y", "without": None}] * 2}]
    (problem,) = [text for text in qabench.evaluate_predictions("expertqa", "sample", rows).problems if "prec" in text]
    assert problem.startswith("no citation_precision: answers with an entailed claim") and rows[0]["id"] in problem


def attribute(*arguments: object) -> int:
    with mock.patch.object(sys, "argv", ["qabench", "expertqa", "attribute", *map(str, arguments)]):
        try:
            main()
        except SystemExit as stopped:
            return int(stopped.code or 0)
    return 0


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    no_weights(monkeypatch)
    monkeypatch.setattr(Labeler, "asked", 0)
    drawn = random.Random(2)
    ids = [question.id for question in load_questions("sample").rows]
    rows = []
    for id in ids:
        claims = [
            {"claim": "c" * drawn.randint(1, 9), "evidence": ["e" * drawn.randint(1, 9) for _ in range(count)]}
            for count in (0, 1, 2, 3)
        ]
        rows.append({"id": id, "claims": claims})
    file, out = tmp_path / "claims.jsonl", tmp_path / "labeled.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert attribute(file, "-o", out, "--citations") == 0
    text = capsys.readouterr().out
    assert "citation recall" in text and "citation precision" in text
    written = [json.loads(line) for line in out.read_text().splitlines()]
    lacking = [claim for row in written for claim in row["claims"] if needs_evidence_labels(claim)]
    assert lacking and all(len(claim[EVIDENCE_LABELS]) == len(claim["evidence"]) for claim in lacking)
    # A repeated command keeps the labels, also without the option. Edited evidence is labeled
    # again.
    asked, content = Labeler.asked, out.read_text()
    assert attribute(file, "-o", out) == 0 and attribute(out, "-o", out, "--citations") == 0
    assert Labeler.asked == asked and out.read_text() == content
    evaluation = qabench.evaluate_predictions("expertqa", "sample", out)
    precision = re.search(r"citation precision +([\d.]+)", text)
    assert precision and f"{evaluation['citation_precision'].value:.4f}" == precision[1]
    assert evaluation.deviations(evaluation["citation_precision"])[0] == "not a score of the benchmark's authors"
    written[0]["claims"][3]["evidence"][0] += " e"
    edited = tmp_path / "edited.jsonl"
    edited.write_text("".join(json.dumps(row) + "\n" for row in written))
    assert attribute(edited, "-o", edited, "--config", "sample") == 0
    assert Labeler.asked > asked and "autoais_macro" in capsys.readouterr().out
    assert EVIDENCE_LABELS not in json.loads(edited.read_text().splitlines()[0])["claims"][3]
