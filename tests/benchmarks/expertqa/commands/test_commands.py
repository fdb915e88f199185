"""``qabench expertqa``: claims, attribution and fact scores from the command line."""

import json
import re
import sys
from pathlib import Path
from statistics import mean
from typing import Any
from unittest import mock

import pytest
from expertqa_scripts import punctuation_splitter
from openai_server import OpenAIServer
from stand_ins import Labeler, no_weights
from web_server import Reply, WebServer, page

import qabench
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.cli import main
from qabench.errors import InputError
from qabench.io.tables import bounds_text
from qabench.stats import mean_interval

Row = dict[str, Any]


def command(*arguments: object) -> int:
    with mock.patch.object(sys, "argv", ["qabench", "expertqa", *map(str, arguments)]):
        try:
            main()
        except SystemExit as stopped:
            return int(stopped.code or 0)
    return 0


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def labeler(monkeypatch: pytest.MonkeyPatch) -> type[Labeler]:
    no_weights(monkeypatch)
    monkeypatch.setattr(Labeler, "asked", 0)
    monkeypatch.setattr(Labeler, "name", Labeler.name)
    return Labeler


def test_claims_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "answers.jsonl", tmp_path / "claims.jsonl"
    rows = [
        {"id": "a", "answer": "Water boils [2]. Hello there. Is it so?", "attribution": ["[1] x", "[2] y"]},
        {"id": "b", "answer": "It is wet [1].", "attribution": ["https://e.org"]},
        {"id": "c", "answer": None},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert command("claims", file, "-o", out) == 0
    first, second, third = lines(out)
    assert first["claims"] == [{"claim": "Water boils [2].", "evidence": ["[2] y"]}]
    assert first["answer"].strip() == "Water boils [2]."
    assert second["claims"] == [{"claim": "It is wet [1].", "evidence": ["https://e.org"]}]
    assert third == {"id": "c", "answer": None, "claims": []}
    assert "2 claims of 3 answers, 2 with evidence" in capsys.readouterr().out
    file.write_text('{"id": "a", "answer": "It is.", "attribution": [1]}\n')
    assert command("claims", file, "-o", out) == 2
    assert "line 1 (id a): its attribution[0] is 1; allowed: a string, or an object" in capsys.readouterr().err


def test_labels_are_kept_and_scored(tmp_path: Path, labeler: type[Labeler], capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "labeled.jsonl"
    assert command("attribute", "--config", "sample", "-o", out) == 0
    text = capsys.readouterr().out
    assert "autoais_macro" in text and "autoais_agreement.not_complete.f1" in text and "rouge" not in text
    assert "By system" in text and "bing_chat" in text
    assert re.search(r"not official \(all scores\): labels: stated:tiny@0:float32", text)
    rows, asked = lines(out), labeler.asked
    assert len(rows) == 8 and all(claim["label"] in "YN" for row in rows for claim in row["claims"])
    out.write_text("".join(json.dumps(row) + "\n" for row in rows[:5]) + '{"id": "cut')
    assert command("attribute", "--config", "sample", "-o", out) == 0
    assert lines(out) == rows and 0 < labeler.asked - asked < asked
    labeler.name = "other@1:float32"
    assert command("attribute", out, "-o", out) == 2
    assert "has labels by tiny@0:float32, not by other@1:float32" in capsys.readouterr().err


@pytest.fixture
def server(
    mirror: Path, spacy_model: str, server: OpenAIServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> OpenAIServer:
    pytest.importorskip("spacy", reason="needs the extra spacy")
    monkeypatch.setattr("qabench.benchmarks.expertqa.facts.punkt", punctuation_splitter)
    server.reply = lambda body: "- It is." if body["max_tokens"] == 512 else "True"
    return server


def test_facts_of_a_config(server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "facts.jsonl"
    arguments = ("facts", "--config", "sample", "--model", "m", "--base-url", server.base_url)
    assert command(*arguments, "--dry-run", "--price-in", 1, "--price-out", 2, "-o", out) == 0
    plan = dict(re.findall(r"(calls|cost) +([\d.]+)", capsys.readouterr().out))
    assert int(plan["calls"]) > 20 and float(plan["cost"]) > 0 and not out.exists() and not server.calls
    assert command(*arguments, "-o", out) == 0
    assert "fact_score_agreement.accuracy" in capsys.readouterr().out
    rows = lines(out)
    assert len(rows) == len(load_questions("sample").rows)
    assert {claim["fact_score"] for row in rows for claim in row["claims"]} == {1.0, None}
    assert rows[0]["fact_scores_by"].startswith("m/official-")
    calls = len(server.calls)
    assert command(*arguments, "-o", out) == 0 and len(server.calls) == calls


def test_facts_with_web_evidence(server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out, search = tmp_path / "claims.jsonl", tmp_path / "facts.jsonl", tmp_path / "search.toml"
    claims = [{"claim": f"Light {word}.", "evidence": []} for word in ("is fast", "fails", "is lost")]
    file.write_text(json.dumps({"id": "a", "claims": claims}) + "\n")
    server.reply = lambda body: "- " + re.findall(r"Light [a-z ]+\.", body["messages"][-1]["content"])[-1]
    with WebServer() as web:
        web.pages |= {"/robots.txt": Reply(b""), "/light": page("Light", "Light is fast, " * 40)}
        web.found = lambda query: ["/light"] if "fast" in query else []
        web.failing = lambda query: "fails" in query
        pages = "[pages]\ndelay = 0\nprivate_addresses = true\n"
        settings = 'results = "results"\naddress = "url"\nfailures = "unresponsive_engines"\n[params]\nq = "{query}"\n'
        search.write_text(f'url = "{web.url}/search"\n{settings}{pages}')
        arguments = ("facts", file, "--model", "m", "--base-url", server.base_url, "-o", out)
        assert command(*arguments, "--search", search, "--corpus", file) == command(*arguments, "--ranker", "bm25") == 2
        assert command(*arguments, "--search", search, "--ranker", "bm25") == 0
        (row,) = lines(out)
        fast, failed, lost = row["claims"]
        assert fast["atomic_evidences"][0].startswith("Passage ID 1: LightLight is fast, Light is fast")
        assert failed["fact_score"] is None and lost["atomic_evidences"] == [""] and lost["fact_score"] == 1.0
        assert re.search(r"/search@\w{8}:bm25$", row["fact_scores_by"])
        assert "no score for claim 2 of a: its evidence: " in capsys.readouterr().out
        asked, calls = len(web.requests), len(server.calls)
        web.failing = lambda query: False
        assert command(*arguments, "--search", search, "--ranker", "bm25") == 0
        assert {path.partition("?")[0] for path, _ in web.requests[asked:]} == {"/search"}
        assert len(server.calls) == calls + 1 and lines(out)[0]["claims"][1]["fact_score"] == 1.0


def test_absent_post_processing_is_named_before_a_call(
    server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "claims.jsonl"
    monkeypatch.setenv("QABENCH_SPACY_MODEL", str(tmp_path))  # no model
    arguments = ("facts", file, "--model", "m", "--base-url", server.base_url, "-o", tmp_path / "facts.jsonl")
    for atomic, code in ((None, 1), (["Light is fast."], 0)):
        claim = {"claim": "Light is fast.", "evidence": [], "atomic_claims": atomic}
        file.write_text(json.dumps({"id": "a", "claims": [claim]}) + "\n")
        assert command(*arguments) == code
        assert ("is neither an installed package nor a folder" in capsys.readouterr().err) is (code == 1)
        assert len(server.calls) == (code == 0)


def test_autoais_of_any_answers(tmp_path: Path, labeler: type[Labeler], capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": "a", "claims": [{"claim": "Water boils.", "evidence": ["It does."]}, {"claim": "It is wet."}]},
        {"id": "b", "claims": [{"claim": "Mars is red.", "evidence": ["Mars"]}] * 3},
        {"id": "c", "claims": []},
    ]
    file, out = tmp_path / "claims.jsonl", tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert command("attribute", file, "-o", out) == 0
    printed = capsys.readouterr().out
    labels = [[claim["label"] for claim in row["claims"]] for row in lines(out) if row["claims"]]
    assert labels[0][1] == "N"  # without evidence
    shares = [own.count("Y") / len(own) for own in labels]
    # Claims of one answer are not independent: the interval is over the answers.
    for share, n in ((mean(shares), 2), (sum(own.count("Y") for own in labels) / 5, 5)):
        assert re.search(rf"{share:.4f} .* {n}\n", printed), printed
    assert bounds_text(mean_interval(shares).low, mean_interval(shares).high) in printed
    assert "unofficial: no expert has judged these claims" in printed
    asked = labeler.asked
    assert command("attribute", file, "-o", out) == 0 and labeler.asked == asked  # labels are kept
    file.write_text('{"id": "c", "claims": []}\n')
    assert command("attribute", file, "-o", tmp_path / "none.jsonl") == 2
    assert "nothing to score: no answer has a claim" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ("x", "claims is 'x'; allowed: a list of objects"),
        ([7], "claims is [7]; allowed: a list of objects"),
        ([{"evidence": []}], "claim 1: its claim is None; allowed: a string"),
        ([{"claim": "A.", "evidence": "x"}], "claim 1: its evidence is 'x'; allowed: a list of strings"),
    ],
)
def test_claims_that_cannot_be_read(
    claims: Any, message: str, tmp_path: Path, labeler: type[Labeler], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "claims.jsonl"
    file.write_text(json.dumps({"id": "a", "claims": claims}) + "\n")
    assert command("attribute", file, "-o", tmp_path / "labels.jsonl") == 2
    assert f"line 1 (id a): {message}" in " ".join(capsys.readouterr().err.split())


CITED = {"answer": "Water boils at 100 C [1]. Ice floats [2]. It is wet.", "evidence": ["Water boils.", "Ice floats."]}
GIVEN = {"claims": ["It is round.", {"claim": "Mars is red.", "evidence": []}], "evidence": ["The Moon."], "id": "x"}
WITHOUT_MARKS = {"answer": "Water is wet. Ice is cold.", "evidence": ["Water.", "Ice."]}


def test_the_metric_labels_claims_of_any_answers(labeler: type[Labeler]) -> None:
    rows = [CITED, GIVEN, WITHOUT_MARKS, {"answer": "Hi.", "evidence": ["x"]}]
    result = qabench.load_metric("expertqa_autoais").compute(predictions=rows, per_question=True)
    assert [[claim["evidence"] for claim in claims] for claims in result["per_question"]] == [
        [["Water boils."], ["Ice floats."], []],  # what each sentence cites
        [["The Moon."], []],
        [["Water.", "Ice."]] * 2,  # no marks: all
        [],
    ]
    labels = [[claim["label"] for claim in claims] for claims in result["per_question"]]
    assert labels[0][2] == labels[1][1] == "N"  # without evidence
    shares = [own.count("Y") / len(own) for own in labels if own]
    assert result["macro"] == pytest.approx(mean(shares))
    assert result["micro"] == sum(own.count("Y") for own in labels) / 7
    assert (result["answers"], result["answers_without_claims"], result["claims"]) == (3, 1, 7)
    assert result["macro_interval"] == [mean_interval(shares).low, mean_interval(shares).high]
    assert f"|labels:{labeler.name}|" in result["signature"] and "|counted:all claims|" in result["signature"]
    for start in ("labels: ", "claims counted: all claims", "references: not the"):
        assert any(sentence.startswith(start) for sentence in result["deviations"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"evidence": ["x"]}, "predictions[0] is {'evidence': ['x']}; allowed: an object with answer"),
        ({"answer": "a b c d", "evidence": "x"}, "predictions[0] is {'answer': 'a b c d', 'evidence': 'x'}"),
        ({"answer": None, "claims": 5}, "predictions[0] is {'answer': None"),
        ({"claims": [7], "evidence": []}, "predictions[0]: claim 1: its claim is 7; allowed: a string"),
        ({"claims": [{"claim": "A", "evidence": 7}]}, "predictions[0]: claim 1: its evidence is 7"),
    ],
)
def test_rows_without_references_that_the_metric_does_not_take(row: Row, message: str, labeler: type[Labeler]) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        qabench.load_metric("expertqa_autoais").compute(predictions=[row])
    assert labeler.asked == 0
