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
from qabench.stats import bootstrap_mean

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
    passages = [{"url": "https://e.org", "text": "Passage ID 1: Water."}]
    rows = [
        {"id": "a", "answer": "Water boils [2]. Hello there. Is it so?", "attribution": ["[1] x", "[2] y"]},
        {"id": "b", "answer": "It is wet [1].", "attribution": passages},
        {"id": "c", "answer": None},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert command("claims", file, "-o", out) == 0
    first, second, third = lines(out)
    assert first["claims"] == [{"claim": "Water boils [2].", "evidence": ["[2] y"]}]
    assert first["answer"].strip() == "Water boils [2]."
    assert second["claims"] == [{"claim": "It is wet [1].", "evidence": ["[1] https://e.org\n\n Water."]}]
    assert third == {"id": "c", "answer": None, "claims": []}
    assert "2 claims of 3 answers, 2 with evidence" in capsys.readouterr().out
    file.write_text('{"id": "a", "answer": "It is.", "attribution": [1]}\n')
    assert command("claims", file, "-o", out) == 2
    assert "line 1: attribution is [1]; allowed: strings, or objects" in capsys.readouterr().err


def test_labels_are_kept_and_scored(tmp_path: Path, labeler: type[Labeler], capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "labeled.jsonl"
    assert command("attribute", "--config", "sample", "-o", out) == 0
    text = capsys.readouterr().out
    assert "autoais_macro" in text and "autoais_agreement.not_complete.f1" in text and "rouge" not in text
    assert "By system" in text and "bing_chat" in text
    assert re.search(r"not official \(autoais, autoais_agreement\): labels: stated:tiny@0:float32", text)
    rows, asked = lines(out), labeler.asked
    assert len(rows) == 8 and all(claim["label"] in "YN" for row in rows for claim in row["claims"])
    out.write_text("".join(json.dumps(row) + "\n" for row in rows[:5]) + '{"id": "cut')
    assert command("attribute", "--config", "sample", "-o", out) == 0
    assert lines(out) == rows and 0 < labeler.asked - asked < asked
    labeler.name = "other@1:float32"
    assert command("attribute", out, "-o", out) == 2
    assert "has labels by tiny@0:float32, not by other@1:float32" in capsys.readouterr().err


@pytest.fixture
def server(server: OpenAIServer, cache: Path) -> OpenAIServer:
    server.reply = lambda body: "- It is." if "<sentence>" in body["messages"][-1]["content"] else "True"
    return server


def test_facts_of_a_config(server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "facts.jsonl"
    arguments = ("facts", "--config", "sample", "--model", "m", "--base-url", server.base_url, "--prompt", "qabench")
    assert command(*arguments, "--dry-run", "--price-in", 1, "--price-out", 2, "-o", out) == 0
    plan = dict(re.findall(r"(calls|cost) +([\d.]+)", capsys.readouterr().out))
    assert int(plan["calls"]) > 20 and float(plan["cost"]) > 0 and not out.exists() and not server.calls
    assert command(*arguments, "-o", out) == 0
    assert "fact_score_agreement.accuracy" in capsys.readouterr().out
    rows = lines(out)
    assert len(rows) == len(load_questions("sample").rows)
    assert {claim["fact_score"] for row in rows for claim in row["claims"]} == {1.0, None}
    assert rows[0]["fact_scores_by"].startswith("m/qabench-")
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
        arguments = ("facts", file, "--model", "m", "--base-url", server.base_url, "--prompt", "qabench", "-o", out)
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


def test_absent_post_processing_is_named(
    mirror: Path,
    server: OpenAIServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, warning = tmp_path / "claims.jsonl", "atomic claims are not post-processed as by the authors"
    file.write_text(json.dumps({"id": "a", "claims": [{"claim": "Light is fast.", "evidence": []}]}) + "\n")
    server.reply = lambda body: "- Light is fast."
    monkeypatch.setenv("QABENCH_SPACY_MODEL", str(mirror))  # no model
    monkeypatch.setattr("qabench.benchmarks.expertqa.facts.punkt", punctuation_splitter)
    for prompt, warned in (("official", True), ("qabench", False)):
        arguments = ("facts", file, "--model", "m", "--base-url", server.base_url, "-o", tmp_path / "facts.jsonl")
        assert command(*arguments, "--prompt", prompt) == 0
        assert (warning in capsys.readouterr().err) is warned


CITED = {"answer": "Water boils at 100 C [1]. Ice floats [2]. It is wet.", "evidence": ["Water boils.", "Ice floats."]}
GIVEN = {"claims": ["It is round.", {"claim": "Mars is red.", "evidence": []}], "evidence": ["The Moon."], "id": "x"}
WITHOUT_MARKS = {"answer": "Water is wet. Ice is cold.", "evidence": ["Water.", "Ice."]}


def test_autoais_of_any_answers(tmp_path: Path, labeler: type[Labeler], capsys: pytest.CaptureFixture[str]) -> None:
    rows = [CITED, GIVEN, WITHOUT_MARKS, {"answer": "Hi.", "evidence": ["x"]}]
    file, out = tmp_path / "answers.jsonl", tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert command("autoais", file, "-o", out, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    computed = qabench.load_metric("expertqa_autoais").compute(predictions=rows, per_question=True)
    evidence = [[claim["evidence"] for claim in claims] for claims in computed["per_question"]]
    assert evidence == [
        [["Water boils."], ["Ice floats."], []],  # what each sentence cites
        [["The Moon."], []],
        [["Water.", "Ice."]] * 2,  # no marks: all
        [],
    ]
    labels = [[claim["label"] for claim in claims] for claims in computed["per_question"]]
    assert [[claim["label"] for claim in item["claims"]] for item in lines(out)] == labels
    shares = [own.count("Y") / len(own) for own in labels if own]
    flat = [label for own in labels for label in own]
    assert (printed["macro"], printed["micro"]) == (pytest.approx(mean(shares)), flat.count("Y") / len(flat))
    assert (printed["answers_without_claims"], printed["claims_without_evidence"]) == (1, 2)
    # Claims of one answer are not independent: the interval is over the answers.
    assert printed["macro_interval"] == pytest.approx([bootstrap_mean(shares).low, bootstrap_mean(shares).high])
    assert printed["signature"] == computed["signature"] and "|counted:all claims|" in computed["signature"]
    assert any(sentence.startswith("claims counted: all claims") for sentence in computed["deviations"])
    asked = labeler.asked
    assert command("autoais", file, "-o", out) == 0 and labeler.asked == asked  # labels are kept
    assert "unofficial: no expert has judged these claims" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"evidence": ["x"]}, "row 1: answer is None; allowed: a string"),
        ({"answer": "a b c d", "evidence": "x"}, "row 1: evidence is 'x'"),
        ({"claims": [7], "evidence": []}, "row 1: claim 1: a JSON int; allowed: an object with claim"),
    ],
)
def test_rows_that_autoais_does_not_take(row: Row, message: str, labeler: type[Labeler]) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        qabench.load_metric("expertqa_autoais").compute(predictions=[row])
