"""``qabench judge``: the quality of judges by labels of people, with a scripted model and with files."""

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_model import scripted
from typer.testing import CliRunner

import qabench
from qabench.cli import app
from qabench.llm.endpoint import JUDGE_BASE_URL


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(JUDGE_BASE_URL, raising=False)
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))


def run(*words: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["judge", *words])
    assert result.exit_code == code, result.output
    return result


def judged(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def labels() -> list[bool]:
    return [label for each in qabench.benchmark("felm").load("sample").rows for label in each.row["labels"]]


def judge_of_first_segment(messages: Any) -> str:
    return "Answer: 1"


def test_a_file_that_does_not_exist_is_no_model(tmp_path: Path) -> None:
    scripted(lambda messages: pytest.fail("a model was called"))
    for name in ("replise.jsonl", "logs/a.eval", "r.csv"):
        error = run("felm", name, "--config", "sample", "--base-url", "http://127.0.0.1:9/v1", code=1).exception
        assert str(error) == f"cannot read {name}: No such file. A judge is a model, or a file of replies"


WORDS = ("felm", "scripted/judge", "--config", "sample", "--prompt", "qabench")


def test_a_model_is_asked_and_compared_with_people(tmp_path: Path) -> None:
    scripted(judge_of_first_segment, "judge")
    document = judged(*WORDS, "--replies", str(tmp_path / "replies.jsonl"))
    (quality,) = document["judges"]
    rows = qabench.benchmark("felm").load("sample").rows
    first = [each.row["labels"][0] for each in rows]
    counts = {"fn": sum(first), "tn": len(first) - sum(first), "unreadable": 0, "without_verdict": 0}
    counts |= {"tp": sum(labels()) - sum(first), "fp": labels().count(False) - (len(first) - sum(first))}
    assert quality["counts"] == counts and quality["n"] == len(labels()) and quality["positive"] == "factual"
    measures = quality["measures"]
    assert measures["sensitivity"]["mean"] == pytest.approx(counts["tp"] / sum(labels()))
    assert measures["specificity"]["mean"] == pytest.approx(counts["tn"] / labels().count(False))
    balanced = (measures["sensitivity"]["mean"] + measures["specificity"]["mean"]) / 2
    assert measures["balanced_accuracy"]["mean"] == pytest.approx(balanced)
    observed = (counts["tp"] + counts["tn"]) / len(labels())
    yes, says_yes = sum(labels()), counts["tp"] + counts["fp"]
    n = len(labels())
    chance = (yes * says_yes + (n - yes) * (n - says_yes)) / n**2
    assert measures["kappa"]["mean"] == pytest.approx((observed - chance) / (1 - chance))
    assert document["usage"]["scripted/judge"]["calls"] == len(rows)
    assert set(quality["by"]) >= {"domain"}

    # The same replies from the cache, and from the file, without a call.
    scripted(lambda messages: pytest.fail("asked again"), "judge")
    again = judged(*WORDS)
    assert again["judges"][0]["counts"] == counts and again["usage"]["scripted/judge"]["calls"] == 0
    from_file = judged("felm", str(tmp_path / "replies.jsonl"), "--config", "sample")
    assert from_file["judges"][0]["counts"] == counts and from_file["usage"] == {}


def test_a_limit_of_calls_is_continued(tmp_path: Path) -> None:
    calls: list[Any] = []

    def reply(messages: Any) -> str:
        calls.append(messages)
        return "ALL_CORRECT"

    scripted(reply, "judge")
    total = len(qabench.benchmark("felm").load("sample").rows)
    part = judged(*WORDS, "--max-calls", "2", "--concurrency", "1")
    assert len(calls) == 2
    assert part["judges"][0]["counts"]["without_verdict"] > 0
    assert any("2 calls (max_calls) was reached" in note for note in part["notes"])
    whole = judged(*WORDS)
    assert len(calls) == total and whole["judges"][0]["counts"]["without_verdict"] == 0


def test_a_part_of_the_calls_is_a_random_part() -> None:
    """The first questions of a dataset are of one domain."""
    asked: list[str] = []

    def reply(messages: Any) -> str:
        asked.append(messages[-1].text)
        return "ALL_CORRECT"

    scripted(reply, "judge")
    quality = judged(*WORDS, "--max-calls", "5", "--concurrency", "1")["judges"][0]
    domains = [each.row["domain"] for each in qabench.benchmark("felm").load("sample").rows]
    assert len(asked) == 5 and len(quality["by"]["domain"]) > len(set(domains[:5]))


def test_an_interrupt_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def complete(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    scripted(judge_of_first_segment, "judge")
    monkeypatch.setattr("qabench.llm.client.ChatClient.complete", complete)
    result = CliRunner().invoke(app, ["judge", *WORDS])
    assert "the replies so far are kept, and the same command asks for the others" in result.stderr


@pytest.mark.parametrize("command", ["score", "compare"])
def test_an_interrupted_judge_says_how_to_go_on(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def complete(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("qabench.llm.client.ChatClient.complete", complete)
    files = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.jsonl"
        ids = [question.id for question in qabench.benchmark("fanoutqa").load("sample").rows]
        path.write_text("".join(json.dumps({"id": id, "answer": name}) + "\n" for id in ids))
        files.append(str(path))
    options = ["--config", "sample", "--judge-model", "m", "--judge-base-url", "http://127.0.0.1:9/v1"]
    scores = ["--scores", "judge"]
    result = CliRunner().invoke(app, [command, "fanoutqa", *files, *options, *scores])
    assert result.exit_code == 130, result.output
    assert "if a judge was asked, its replies are kept, and the same command asks for the others" in result.stderr


def test_judges_that_fail_are_named_and_the_others_compared(tmp_path: Path) -> None:
    scripted(judge_of_first_segment, "judge")
    scripted(lambda messages: "", "silent")
    words = ("felm", "scripted/silent", "scripted/judge", *WORDS[2:])
    document = judged(*words)
    assert [each["judge"] for each in document["judges"]] == ["scripted/judge"]
    assert "left out: scripted/silent gave no reply: the reply is empty" in document["notes"]
    error = run("felm", "scripted/silent", *WORDS[2:], code=1).exception
    assert str(error) == "scripted/silent gave no reply: the reply is empty"


def test_judges_are_compared_in_pairs(tmp_path: Path) -> None:
    rows = qabench.benchmark("felm").load("sample").rows
    files = {"perfect": lambda labels: labels, "lazy": lambda labels: [True] * len(labels)}
    for name, verdicts in files.items():
        lines = [json.dumps({"id": each.id, "labels": verdicts(each.row["labels"])}) for each in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    paths = [str(tmp_path / f"{name}.jsonl") for name in files]
    document = judged("felm", *paths, "--config", "sample")
    (pair,) = document["pairs"]
    assert (pair["first"], pair["second"], pair["difference"]) == ("perfect", "lazy", 0.5)
    table = run("felm", *paths, "--config", "sample", "--by", "domain").output
    assert "Judges compared" in table and "By domain" in table and "By length" not in table
    error = run("felm", *paths, "--config", "sample", "--by", "color", code=1)
    assert "no grouping 'color'" in str(error.exception)


def test_reports_and_json_have_the_judges(tmp_path: Path) -> None:
    scripted(judge_of_first_segment, "judge")
    out, path = tmp_path / "report", tmp_path / "judges.json"
    run(*WORDS, "--report", str(out), "--output", str(path), "--published")
    assert "Is each segment of a response factual?" in (out / "index.html").read_text()
    assert json.loads((out / "judges.json").read_text()) == json.loads(path.read_text())


def test_published_judges_are_in_the_table(mirror: Path, tmp_path: Path) -> None:
    rows = qabench.benchmark("felm").load("all").rows
    lines = [json.dumps({"id": each.id, "labels": [True] * len(each.row["labels"])}) for each in rows]
    (tmp_path / "lazy.jsonl").write_text("\n".join(lines))
    table = run("felm", str(tmp_path / "lazy.jsonl"), "--published").output
    assert "GPT-4" in table and "0.6710" in table
    document = judged("felm", str(tmp_path / "lazy.jsonl"), "--published")
    assert {each["judge"] for each in document["published"]} == {"GPT-4", "ChatGPT", "Vicuna-33B"}


def test_experts_are_asked_about_claims(mirror: Path) -> None:
    """A judge that calls every claim true: a sensitivity of 1, and a specificity of 0, for both judgments."""
    scripted(lambda messages: "True.", "judge")
    words = ("expertqa", "scripted/judge", "--config", "random", "--split", "validation", "--limit", "20")
    qualities = {each["score"]: each for each in judged(*words)["judges"]}
    assert set(qualities) == {"supported", "correct"}
    for quality in qualities.values():
        assert quality["measures"]["sensitivity"]["mean"] == 1
        assert quality["measures"]["specificity"]["mean"] == 0
        assert quality["questions"] <= 20 and quality["counts"]["without_verdict"] == 0


def test_replies_without_a_verdict_are_counted(mirror: Path, tmp_path: Path) -> None:
    """The authors' script reads them as true. They count, and their number is shown."""
    scripted(lambda messages: "I like turtles.", "judge")
    words = ("expertqa", "scripted/judge", "--config", "random", "--split", "validation", "--limit", "5")
    document = judged(*words, "--replies", str(tmp_path / "replies.jsonl"))
    for quality in document["judges"]:
        assert quality["counts"]["unreadable"] == quality["n"] > 0
        assert quality["measures"]["sensitivity"]["mean"] == 1
    assert "unreadable" in run(*words).output
    # The replies themselves are in the file, which gives the same counts.
    lines = [json.loads(line) for line in (tmp_path / "replies.jsonl").read_text().splitlines()]
    decisions = [claim["decisions"] for line in lines for claim in line["claims"]]
    assert all(decision["reply"] == "I like turtles." for (decision,) in decisions)
    from_file = judged("expertqa", str(tmp_path / "replies.jsonl"), *words[2:6])
    assert [each["counts"] for each in from_file["judges"]] == [each["counts"] for each in document["judges"]]


def test_claims_that_were_not_asked_have_no_verdict(mirror: Path) -> None:
    """Also those without evidence, which count as not supported in files of labels."""
    scripted(lambda messages: "True.", "judge")
    words = ("expertqa", "scripted/judge", "--config", "random", "--split", "validation", "--limit", "20")
    part = judged(*words, "--max-calls", "36", "--concurrency", "1")
    for quality in part["judges"]:
        assert 0 < quality["n"] <= 36
        assert quality["counts"]["fn"] == quality["counts"]["tn"] == 0  # the judge never says no


def test_only_the_record_of_a_judge_has_failed_calls(mirror: Path, tmp_path: Path) -> None:
    """In a file of labels, a field of this name takes no claim out of the agreement."""
    scripted(lambda messages: "True.", "judge")
    words = ("expertqa", "scripted/judge", "--config", "random", "--split", "validation", "--limit", "5")
    path = tmp_path / "replies.jsonl"
    judged(*words, "--replies", str(path), "--max-calls", "10", "--concurrency", "1")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert any("call_failed" in claim for line in lines for claim in line["claims"])
    asked = {each["score"]: each["n"] for each in judged("expertqa", str(path), *words[2:6])["judges"]}
    for line in lines:
        for claim in line["claims"]:
            claim["call_failed"] = "a reason"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with_verdicts = {each["score"]: each["n"] for each in judged("expertqa", str(path), *words[2:6])["judges"]}
    assert with_verdicts == asked, "a claim with a verdict has a reply"
    for line in lines:
        del line["recorded_by"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    others = {each["score"]: each["n"] for each in judged("expertqa", str(path), *words[2:6])["judges"]}
    assert others["supported"] > asked["supported"], "claims without evidence are judged not supported"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("fanoutqa", "scripted/judge"), "FanOutQA has no labels of people to compare a judge with"),
        ((*WORDS, "--method", "cot-cons"), "cannot be asked by the method 'cot-cons'"),
        (("felm", "gpt-4o", "--config", "sample", "--prompt", "qabench"), "gpt-4o cannot be asked: no key"),
        ((*WORDS, "scripted/other", "--replies", "r.jsonl"), "--replies is for a single judge; got 2"),
    ],
)
def test_what_cannot_be_asked_is_named(words: tuple[str, ...], error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FANOUTQA_OPENAI_API_KEY", raising=False)
    scripted(judge_of_first_segment, "judge")
    assert error in str(run(*words, code=1).exception)


def test_estimates_need_no_key(tmp_path: Path) -> None:
    words = ("felm", "gpt-4o", "--config", "sample", "--prompt", "qabench", "--dry-run", "--output")
    path = tmp_path / "estimate.json"
    table = run(*words, str(path), "--price-in", "2", "--price-out", "8").output
    assert "Estimate of qabench judge felm" in table
    (estimate,) = json.loads(path.read_text())["estimate"].values()
    assert estimate["calls"] == 13 and f"{estimate['cost']:.4f}" in table
    assert "unknown" in run(*words, str(path)).output
    assert json.loads(run(*words, str(path), "--json").stdout) == json.loads(path.read_text())


def test_a_judge_that_is_named_twice_has_two_rows() -> None:
    words = ("felm", "gpt-4o", "gpt-4o", "--config", "sample", "--prompt", "qabench", "--dry-run", "--json")
    first, second = json.loads(run(*words, "--price-in", "2", "--price-out", "8").stdout)["estimate"].items()
    assert (first[0], second[0]) == ("gpt-4o", "gpt-4o (2)") and first[1]["calls"] == 13 and first[1]["cost"] > 0
    assert second[1] == {"calls": 0, "cached": 13, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.0}


@pytest.mark.parametrize("option", ["--report", "--replies"])
def test_estimates_write_no_report(option: str, tmp_path: Path) -> None:
    error = run(*WORDS, "--dry-run", option, str(tmp_path / "out"), code=1).exception
    assert str(error) == f"--dry-run asks no judge, so there is nothing to write for {option}"
    assert not (tmp_path / "out").exists()
