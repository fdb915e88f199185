"""``qabench expertqa``: what is kept of earlier outputs, checks before paid calls, and limits of
calls.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from claim_lines import claim, command, lines, written
from expertqa_scripts import punctuation_splitter
from openai_server import Fault, OpenAIServer
from stand_ins import Labeler

from qabench.benchmarks.expertqa.factscore import reply_is_true, states_verdict

Row = dict[str, Any]


@pytest.fixture
def judge(
    mirror: Path, spacy_model: str, server: OpenAIServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> OpenAIServer:
    """A server that breaks a claim down into one fact, which is true."""
    pytest.importorskip("spacy", reason="needs the extra spacy")
    monkeypatch.setattr("qabench.benchmarks.expertqa.facts.punkt", punctuation_splitter)
    server.reply = lambda body: "- It is." if body["max_tokens"] == 512 else "True"
    return server


MARS, ICE = claim("Mars is red.", "Iron oxide"), claim("Ice floats.", "Ice is light.")


@pytest.mark.parametrize("edited", [ICE, claim("Mars is blue.", "Iron oxide"), claim("Mars is red, too.", "Iron")])
def test_labels_belong_to_claims_not_to_ids(
    edited: Row, tmp_path: Path, labeler: type[Labeler], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "labeled.jsonl"
    first = written(tmp_path / "a.jsonl", {"id": "1", "claims": [MARS]})
    second = written(tmp_path / "b.jsonl", {"id": "1", "claims": [edited]})
    assert command("expertqa", "attribute", first, "-o", out) == 0
    assert "1.0000" in capsys.readouterr().out
    assert command("expertqa", "attribute", second, "-o", out) == 0
    printed = capsys.readouterr()
    expected = "Y" if "red" in edited["claim"] else "N"
    assert f"{float(expected == 'Y'):.4f}" in printed.out
    assert [(own["claim"], own["label"]) for own in lines(out)[0]["claims"]] == [(edited["claim"], expected)]
    # What the other claims had is named, and kept.
    (backup,) = tmp_path.glob("labeled.before-*.jsonl")
    assert backup.name in printed.err and lines(backup)[0]["claims"][0]["label"] == "Y"
    asked = labeler.asked
    assert command("expertqa", "attribute", second, "-o", out) == 0 and labeler.asked == asked


def test_an_edited_line_of_labels_is_labeled_again(tmp_path: Path, labeler: type[Labeler]) -> None:
    file, out = written(tmp_path / "a.jsonl", {"id": "1", "claims": [MARS]}), tmp_path / "labeled.jsonl"
    assert command("expertqa", "attribute", file, "-o", out) == 0
    (row,) = lines(out)
    row["claims"][0]["claim"] = "Mars is blue."
    written(out, row)
    assert command("expertqa", "attribute", out, "-o", out) == 0
    assert lines(out)[0]["claims"][0]["label"] == "N"


def test_lines_with_the_same_id_all_count(
    tmp_path: Path, labeler: type[Labeler], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": "1", "claims": [MARS]}, {"id": "1", "claims": [ICE]}]
    for systems in ((None, None), ("a", "b")):
        own = [row | ({"system": system} if system else {}) for row, system in zip(rows, systems, strict=True)]
        file, out = written(tmp_path / "a.jsonl", *own), tmp_path / "labeled.jsonl"
        assert command("expertqa", "attribute", file, "-o", out) == 0
        assert "0.5000" in capsys.readouterr().out
        assert [row["claims"][0]["label"] for row in lines(out)] == ["Y", "N"]
        assert [row.get("system") for row in lines(out)] == list(systems)


def test_only_lines_of_the_input_are_scored(
    tmp_path: Path, labeler: type[Labeler], capsys: pytest.CaptureFixture[str]
) -> None:
    everything, file, out = tmp_path / "all.jsonl", tmp_path / "three.jsonl", tmp_path / "labeled.jsonl"
    assert command("expertqa", "attribute", "--config", "sample", "-o", everything) == 0
    rows = lines(everything)
    for row in rows:
        for own in row["claims"]:
            del own["label"]
        del row["labels_by"]
    written(file, *rows[:3])
    out.write_bytes(everything.read_bytes())
    capsys.readouterr()
    assert command("expertqa", "attribute", file, "--config", "sample", "-o", out) == 0
    assert len(lines(out)) == 3 and "questions without a prediction: 5" in " ".join(capsys.readouterr().out.split())
    # Two systems with the same ids are two results.
    twice = [row | {"system": system} for system in ("one", "two") for row in rows]
    assert command("expertqa", "attribute", written(file, *twice), "--config", "sample", "-o", out) == 0
    printed = capsys.readouterr().out
    assert "one" in printed and "two" in printed and "replaced by a later line" not in printed


def test_claims_pass_on_all_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "1", "answer": "Mars is red [1].", "attribution": ["[1] Iron"], "field": "Medicine", "system": "s"}
    file, out = written(tmp_path / "a.jsonl", row | {"sample": 2, "mine": {"a": [1]}}), tmp_path / "claims.jsonl"
    assert command("expertqa", "claims", file, "-o", out) == 0
    assert lines(out) == [row | {"sample": 2, "mine": {"a": [1]}, "claims": [claim("Mars is red [1].", "[1] Iron")]}]
    before = file.read_bytes()
    assert command("expertqa", "claims", file, "-o", file) == 2 and file.read_bytes() == before
    assert "use another --output" in capsys.readouterr().err


def facts(server: OpenAIServer, file: Path, out: Path, *more: object) -> int:
    address = ("--model", "m", "--base-url", server.base_url, "--max-retries", 0)
    return command("expertqa", "facts", file, *address, "-o", out, *more)


def test_all_commands_in_a_chain_lose_nothing(
    judge: OpenAIServer, labeler: type[Labeler], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"attribution": ["[1] Iron"], "field": "Medicine", "mine": {"a": [1]}}
    rows = [
        {"id": "1", "answer": "Mars is red [1].", "system": system, "sample": sample, **own}
        for system in ("a", "b")
        for sample in (1, 2)
    ]
    files = [written(tmp_path / "answers.jsonl", *rows)]
    files += [tmp_path / f"{name}.jsonl" for name in ("claims", "labeled", "facts", "again")]
    assert command("expertqa", "claims", files[0], "-o", files[1]) == 0
    assert command("expertqa", "attribute", files[1], "-o", files[2]) == 0
    assert facts(judge, files[2], files[3]) == 0
    assert command("expertqa", "attribute", files[3], "-o", files[4]) == 0
    for before, after in pairwise(files):
        for earlier, later in zip(lines(before), lines(after), strict=True):
            claims_before, claims_after = earlier.pop("claims", []), later.pop("claims")
            assert later.items() >= earlier.items()
            assert all(a.items() >= b.items() for b, a in zip(claims_before, claims_after, strict=False))
    last = lines(files[4])[0]
    assert last["fact_scores_by"].startswith("m/") and last["labels_by"] == labeler.name
    assert last["claims"][0]["label"] == "Y" and last["claims"][0]["fact_score"] == 1.0
    assert all("Medicine" in call.asked for call in judge.calls if call.body["max_tokens"] == 2048)
    # The scores of both systems have all their samples, and are exported.
    out, folder = tmp_path / "scores.json", tmp_path / "shared"
    assert command("score", "expertqa", files[4], "-o", out) == 0
    for each in json.loads(out.read_text())["evaluations"]:
        assert each["model"] in ("a", "b") and each["counts"]["records"] == 2 and not each["problems"]
        for name in ("autoais_macro", "autoais_micro", "fact_score", "fact_score_readable", "evidence"):
            assert each["scores"][name] == 1.0 and each["deviations"][name]
    assert command("export", "expertqa", files[4], "--format", "eee", "-o", folder) == 0
    exported = [json.loads(path.read_text()) for path in sorted(folder.rglob("*.json"))]
    assert len(exported) == 2
    instances = [row for path in folder.rglob("*.jsonl") for row in lines(path)]
    assert {(row["model_id"], row["metadata"]["epoch"]) for row in instances} == {
        (f"unknown/{system}", epoch) for system in "ab" for epoch in "12"
    }


def test_unreadable_verdicts_are_counted(
    judge: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = {"Mars": "No", "Ice": "正しい", "Salt": "True", "Snow": "It is False."}

    def reply(body: Row) -> str:
        statement = body["messages"][-1]["content"].rpartition("Input: ")[2]
        return next(text for word, text in replies.items() if word in statement)

    judge.reply = reply
    claims = [claim(f"{word} is.", "x", atomic_claims=[f"{word} is."]) for word in replies]
    file, out = written(tmp_path / "c.jsonl", {"id": "1", "claims": claims}), tmp_path / "facts.jsonl"
    assert facts(judge, file, out) == 0
    assert [(own["fact_score"], own["fact_score_readable"]) for own in lines(out)[0]["claims"]] == [
        (1.0, None), (1.0, None), (1.0, 1.0), (0.0, 0.0),
    ]  # fmt: skip
    expected = {"atom": "Mars is.", "is_supported": True, "readable": False, "reply": "No", "evidence": "x"}
    assert lines(out)[0]["claims"][0]["decisions"] == [expected]
    text = " ".join(capsys.readouterr().err.split())
    assert "not a plain true or false: 2 (claim 1 of 1: 'No', claim 2 of 1: '正しい')" in text
    assert "mean fact score is 0.7500, and 0.5000 over the readable verdicts of 2 claims" in text


@pytest.mark.parametrize(
    ("reply", "readable"),
    [("True", True), ("false.", True), ("It is not, so False", True), ("No", False), ("not true", False),
     ("untrue", False), ("", False)],
)  # fmt: skip
def test_readable_verdicts(reply: str, readable: bool) -> None:
    assert states_verdict(reply) is readable
    assert isinstance(reply_is_true(reply), bool)


def test_a_good_output_is_not_replaced_by_a_worse_one(
    judge: OpenAIServer,
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, out = written(tmp_path / "c.jsonl", {"id": "1", "claims": [MARS, ICE]}), tmp_path / "facts.jsonl"
    assert facts(judge, file, out) == 0
    good = out.read_bytes()
    # the server is down, its replies are not in the cache
    assert facts(judge, file, out, "--no-cache", "--timeout", 5) == 0 and out.read_bytes() == good
    judge.fault = lambda number, body: Fault(500)
    assert facts(judge, file, out, "--no-cache") == 0 and out.read_bytes() == good
    assert "2 fact scores" in capsys.readouterr().out
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("FANOUTQA_OPENAI_API_KEY", raising=False)
    calls = len(judge.calls)
    without_address = ("expertqa", "facts", file, "--model", "m", "-o", out)
    assert command(*without_address) == 1 and out.read_bytes() == good
    assert "no fact score can be computed" in capsys.readouterr().err
    # Another model is another result.
    assert facts(judge, file, out, "--temperature", 0) == 2
    assert "facts.jsonl has fact scores by m/" in capsys.readouterr().err
    folder = tmp_path / "folder"
    folder.mkdir()
    assert facts(judge, file, folder) == 1
    assert facts(judge, file, tmp_path / "new.jsonl", "--config", "sample") == 2
    assert "whose id is not a question of expertqa sample" in " ".join(capsys.readouterr().err.split())
    assert len(judge.calls) == calls


@pytest.mark.parametrize("most", [0, 1, 3, 7])
def test_calls_never_exceed_their_limit(most: int, judge: OpenAIServer, tmp_path: Path) -> None:
    claims = [claim(f"Fact {number} is so.", "x") for number in range(9)]
    file = written(tmp_path / "c.jsonl", {"id": "1", "claims": claims})
    judge.delay = 0.02
    facts(judge, file, tmp_path / "facts.jsonl", "--max-calls", most, "--concurrency", 8)
    assert len(judge.calls) == most


def test_a_server_that_does_not_answer_is_asked_once(
    judge: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [claim(f"Fact {number} is so.", "x") for number in range(9)]
    file, out = written(tmp_path / "c.jsonl", {"id": "1", "claims": claims}), tmp_path / "facts.jsonl"
    judge.fault = lambda number, body: Fault(503)
    assert facts(judge, file, out) == 1
    assert len(judge.calls) == 1 and "does not answer" in " ".join(capsys.readouterr().out.split())


def test_empty_replies_are_asked_again(judge: OpenAIServer, tmp_path: Path) -> None:
    file, out = written(tmp_path / "c.jsonl", {"id": "1", "claims": [MARS]}), tmp_path / "facts.jsonl"
    good = judge.reply
    judge.reply = lambda body: ""
    assert facts(judge, file, out) == 1
    judge.reply = good
    assert facts(judge, file, out) == 0 and len(judge.calls) == 3
    assert facts(judge, file, out) == 0 and len(judge.calls) == 3


def test_options_of_calls(judge: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = written(tmp_path / "c.jsonl", {"id": "1", "claims": [MARS]}), tmp_path / "facts.jsonl"
    assert facts(judge, file, out, "--temperature", 0, "--seed", 3, "--no-cache", "--atomic-model", "a") == 0
    assert {(call.body["temperature"], call.body["seed"]) for call in judge.calls} == {(0, 3)}
    by = lines(out)[0]
    assert "/seed:3/temperature:0" in by["fact_scores_by"] and by["atomic_claims_by"].startswith("a:official-")
    assert facts(judge, file, out, "--temperature", 0, "--seed", 3, "--no-cache", "--atomic-model", "a") == 0
    assert len(judge.calls) == 4
    prices = ("--dry-run", "--price-in", 0, "--price-out", 0, "--no-cache", "--atomic-model", "a")
    assert facts(judge, file, out, *prices) == 2
    assert "--atomic-price-in" in capsys.readouterr().err
    assert facts(judge, file, out, *prices, "--atomic-price-in", 1e6, "--atomic-price-out", 0) == 0
    plan = dict(line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("cost", "calls")))
    assert float(plan["cost"]) > 1 and plan["calls"] == "4"
    # The atomic claims in the file are those of a: who made them stays known.
    judged = tmp_path / "judged.jsonl"
    assert facts(judge, out, judged) == 0
    assert f"/given:{by['atomic_claims_by']}" in lines(judged)[0]["fact_scores_by"]


def test_the_cost_is_that_of_counted_tokens(
    judge: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = written(tmp_path / "c.jsonl", {"id": "1", "claims": [MARS, ICE]}), tmp_path / "facts.jsonl"
    prices = ("--price-in", 1000, "--price-out", 0, "--atomic-price-in", 0, "--atomic-price-out", 10_000)
    assert facts(judge, file, out, "--atomic-model", "a", *prices) == 0
    # The server counts 100 tokens of each prompt and 10 of each reply. "It is." is judged twice, by
    # evidence.
    expected = "4 calls (0 replies from the cache), 400 prompt tokens, 40 reply tokens, cost 0.4000"
    assert len(judge.calls) == 4 and expected in capsys.readouterr().out
    assert facts(judge, file, out, "--atomic-model", "a") == 0
    assert "0 calls (4 replies from the cache), 0 prompt tokens, 0 reply tokens\n" in capsys.readouterr().out
    # Calls that were retried, or failed for good, are counted.
    judge.fault = lambda number, body: Fault(503, headers={"Retry-After": "0"})
    assert facts(judge, file, tmp_path / "new.jsonl", "--no-cache", "--max-retries", 1, *prices[:4]) == 1
    printed = capsys.readouterr().out
    assert f"{len(judge.calls) - 4} calls" in printed and "cost 0.0000" in printed
