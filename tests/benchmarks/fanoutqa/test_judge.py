"""The judge: scores of replies, the metrics fanout_judge and fanoutqa, and ``qabench score --scores
judge``.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import OpenAIServer
from question_rows import question_rows
from typer.testing import CliRunner, Result

import qabench
from qabench.benchmarks.fanoutqa.judge import (
    VERDICTS,
    judge_answers,
    judge_for,
    judge_from,
    official_score,
    read_judgment,
)
from qabench.data.answers import UNANSWERED
from qabench.errors import InputError, MissingExtra

REPLIES = {"good": "It has it all.\nC", "more": "so: B", "same": "e", "less": "A\n", "bad": "D", "off": " f "}


@pytest.fixture(autouse=True)
def _own_environment(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FANOUTQA_OPENAI_API_KEY", "FANOUTQA_JUDGE_MODEL", "FANOUTQA_OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "never")


@pytest.fixture
def server(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    """Replies from ``REPLIES`` by the judged answer, for this project's prompt."""
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)
    server.reply = lambda body: REPLIES.get(answer_in(body), "no letter here!")
    monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", server.base_url)
    monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "k")
    return server


def answer_in(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"]).split("<answer>\n")[1].split("\n</answer>")[0]


@pytest.mark.parametrize("letter", "abcdef")
def test_a_letter_is_a_verdict_and_b_c_e_are_worth_one(letter: str) -> None:
    for reply in (letter, letter.upper(), f"Because.\n\n{letter.upper()}\n ", f"({letter}", f"it is {letter}"):
        judgment = read_judgment(reply, "stop")
        assert judgment.verdict == VERDICTS[letter]
        assert judgment.score == judgment.readable == int(letter in "bce") and judgment.reason is None


@pytest.mark.parametrize(
    ("reply", "how", "official", "reason"),
    [
        ("", {}, 0, "empty"),
        ("**C**", {}, 0, "does not end with a letter"),
        ("I cannot judge", {}, 1, "does not end with a letter"),
        ("it covers the B", {"finish_reason": "length"}, 1, "truncated"),
        ("B", {"finish_reason": "content_filter"}, 1, "refused"),
        ("", {"refusal": "I won't"}, 0, 'refused: "I won\'t"'),
    ],
)
def test_unreadable_replies_score_officially(reply: str, how: dict[str, str], official: int, reason: str) -> None:
    judgment = read_judgment(reply, **how)
    assert (judgment.verdict, judgment.score, judgment.readable) == (None, official, None)
    assert judgment.reason and reason in judgment.reason


@given(st.text(min_size=1).filter(str.strip))
def test_the_official_score_is_upstream_s(reply: str) -> None:
    assert official_score(reply) == int(reply.strip()[-1].lower() in "bce")


def judge(server: OpenAIServer, answers: list[Any], **options: Any) -> Any:
    questions = [f"q{i}" for i in range(len(answers))]
    references = ["r"] * len(answers)
    return judge_answers(questions, references, answers, judge_for(**{"retries": 0, **options}))


def test_official_parameters_and_every_verdict(server: OpenAIServer) -> None:
    run = judge(server, [*REPLIES, UNANSWERED, None, "", "gibberish"])
    body = server.calls[0].body
    assert (body["model"], body["temperature"], body["seed"]) == ("gpt-4o-2024-11-20", 0, 31415)
    assert len(server.calls) == 8  # the empty answer is judged, the unanswered are not
    assert [q.score for q in run.per_question] == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert [q.readable for q in run.per_question] == [1, 1, 1, 0, 0, 0, 0, 0, None, None]
    result = run.as_dict()
    assert result["counts"] == {"questions": 10, "scored": 10, "readable": 8, "unanswered": 2, "shortened": 0}
    assert [reply["index"] for reply in result["unreadable"]] == [8, 9]
    assert result["models"] == ["gpt-4o-2024-11-20"]


def test_a_long_answer_is_judged_by_its_beginning(server: OpenAIServer) -> None:
    server.reply = lambda body: "C"
    run = judge(server, ["x" * 4001])
    assert answer_in(server.calls[0].body) == "x" * 4000
    assert run.as_dict()["counts"]["shortened"] == 1


def test_no_key_and_no_openai(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FANOUTQA_OPENAI_API_BASE")
    monkeypatch.delenv("FANOUTQA_OPENAI_API_KEY")
    run = judge_answers(["q"], ["r"], ["good"], judge_for())
    assert run.per_question == () and "FANOUTQA_OPENAI_API_KEY" in run.as_dict()["absent"]["gpt"]
    unanswered = judge_answers(["q"], ["r"], [UNANSWERED], judge_for())
    assert [judgment.score for judgment in unanswered.per_question] == [0]
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra, match=r"qabench\[judge\]"):
        judge_answers(["q"], ["r"], ["good"], judge_for(base_url=server.base_url))


def test_parameters() -> None:
    assert judge_for(parameters={"temperature": None, "top_p": 1}).parameters == {"seed": 31415, "top_p": 1}
    for value, message in (({"messages": []}, "must not contain messages"), ({"x": object()}, "must be JSON")):
        with pytest.raises(InputError, match=message):
            judge_for(parameters=value)
    assert judge_for(llm_cache_key="system-2").requests(["q"], ["r"], ["good"])[0].namespace == "system-2"


@pytest.mark.parametrize(
    "options",
    [3, "[1]", "x", '{"timeout": "x"}', {"retries": "a"}, {"parameters": 3}, {"prompt": 3}]
    + [{"prices": prices} for prices in (3, [1], "2.5,10", ["a", "b"], {"input": 1})],
)
def test_options_of_a_wrong_type(options: Any) -> None:
    with pytest.raises(InputError, match=r"^judge is .*; allowed: a dict, or a JSON object, of the judge's options"):
        judge_from(options)


def test_the_metric(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = qabench.load_metric("fanout_judge")
    given = {"predictions": ["good", None, "bad", "?"], "references": ["r", 2, [True], {"a": "b"}]}
    questions = ["q1", "q2", "q3", "q4"]
    result = metric.compute(**given, questions=questions, per_question=True)
    assert (result["gpt"], result["gpt_readable"]) == (1 / 4, 1 / 3)
    assert result["unreadable"] == [{"index": 3, "reason": result["per_question"][3]["reason"]}]
    for part in ("judge:gpt-4o-2024-11-20", "judge_prompt:qabench-", "temperature:0", "seed:31415", server.base_url):
        assert part in result["signature"]
    for prediction, reference in zip(given["predictions"], given["references"], strict=True):
        metric.add(prediction=prediction, reference=reference)
    again = metric.compute(questions=questions)
    assert (again["gpt"], again["usage"]["calls"], again["usage"]["cached"]) == (1 / 4, 0, 3)
    monkeypatch.setenv("FANOUTQA_JUDGE_MODEL", "other")
    assert metric.compute(**given, questions=questions)["model"] == "other"
    for wrong, message in (
        ({}, "needs the questions"),
        ({"questions": ["q"]}, "1 questions for 4 references; allowed: a list of 4 strings"),
        ({"questions": ["q1", "q2", None, "q4"]}, r"questions\[2\] is None; allowed"),
        ({"questions": questions, "judge": "gpt-4"}, "judge is 'gpt-4'; allowed: a dict"),
    ):
        with pytest.raises(InputError, match=message):
            metric.compute(**given, **wrong)
    result = metric.compute(**given, questions=questions, judge={"model": "third", "prices": (1, 2)})
    assert result["usage"]["cost"] == pytest.approx(3 * (100 + 10 * 2) / 1e6)


def test_the_environment_s_key_is_sent_to_its_server_only(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FANOUTQA_OPENAI_API_BASE")
    monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "SECRET")
    given: dict[str, Any] = {"predictions": ["good"], "references": ["r"], "questions": ["q"]}
    qabench.load_metric("fanout_judge").compute(**given, base_url=server.base_url)
    judge = {"base_url": server.base_url, "model": "other"}
    qabench.load_metric("fanoutqa").compute(**given, judge=judge, lemmatizer="simplemma")
    keys = [call.headers["authorization"] for call in server.calls]
    assert keys == ["Bearer no-key"] * 2


def test_a_question_without_a_prediction_needs_no_text(server: OpenAIServer) -> None:
    result = qabench.load_metric("fanout_judge").compute(
        predictions=["good", None], references=["r", "s"], questions=["q", None], per_question=True
    )
    assert result["per_question"][1]["reason"] is None and result["gpt"] == 1 / 2


def test_all_scores_in_the_official_shape(server: OpenAIServer) -> None:
    metric = qabench.load_metric("fanoutqa")
    given = {"predictions": ["good", None, "?"], "references": ["good", ["x"], 7], "lemmatizer": "simplemma"}

    def length_ratio(references: list[str], candidates: list[str]) -> list[float]:
        assert candidates == ["good", "", "?"]
        return [len(c) / len(r) for r, c in zip(references, candidates, strict=True)]

    result = metric.compute(**given, questions=list("qpo"), bleurt=length_ratio, per_question=True)
    assert result["acc"] == {"loose": 1 / 3, "strict": 1 / 3}
    assert set(result["rouge"]) == {"rouge1", "rouge2", "rougeL"} and result["bleurt"] == 2 / 3
    assert (result["gpt"], result["judge"]["gpt_readable"], result["absent"]) == (1 / 3, 1 / 2, {})
    assert [row["gpt"] for row in result["raw"]] == [1, 0, 0]
    assert [row["acc"] for row in result["raw"]] == [1, 0, 0]
    assert [row["question_id"] for row in result["raw"]] == [0, 1, 2]
    assert result["raw"][0]["rouge"]["rouge1"] == {"precision": 1, "recall": 1, "fscore": 1}
    assert "bleurt:function:length_ratio" in result["signature"] and "judge_prompt:qabench-" in result["signature"]


def test_unavailable_scores_are_absent(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = qabench.load_metric("fanoutqa")
    given = {"predictions": ["good"], "references": ["good"], "lemmatizer": "simplemma"}
    result = metric.compute(**given)
    assert not {"gpt", "bleurt"} & set(result) and set(result["absent"]) == {"gpt", "bleurt"}
    assert "left out" in metric.compute(**given, questions=["q"], judge=False)["absent"]["gpt"]
    monkeypatch.delenv("FANOUTQA_OPENAI_API_BASE")
    monkeypatch.delenv("FANOUTQA_OPENAI_API_KEY")
    assert "no key" in metric.compute(**given, questions=["q"])["absent"]["gpt"]
    assert server.calls == []
    with pytest.raises(InputError, match="returned 0 scores for 1"):
        metric.compute(**given, bleurt=lambda references, candidates: [])


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """A file with one answer of each kind to the sample's questions; the last question is
    unanswered.
    """
    rows = question_rows("sample")
    texts = [*REPLIES, "gibberish"]
    lines = [{"id": row["id"], "answer": text} for row, text in zip(rows[:-1], texts, strict=False)]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def score(*arguments: object) -> Result:
    from qabench.cli import app

    command = ["score", "fanoutqa", *arguments, "--config", "sample", "--scores", "judge"]
    return CliRunner().invoke(app, list(map(str, command)))


def test_the_command(server: OpenAIServer, answers: Path, tmp_path: Path) -> None:
    n = len(answers.read_text().splitlines())
    options = ["--judge", '{"retries": 0, "concurrency": 1}', "--json"]
    priced = ["--judge", '{"prices": [2.5, 10], "retries": 0}', "--json"]
    planned = score(answers, "--judge-max-calls", 0, *priced)
    assert (planned.exit_code, server.calls) == (1, [])
    (note,) = json.loads(planned.stdout)["evaluations"][0]["notes"]
    calls, prompts, replies, cost = re.findall(r"\d[\d.,]*\d|\d", note)
    assert (int(calls), replies) == (n, f"{300 * n:,}") and note.endswith("(estimates)")
    assert float(cost) == pytest.approx((int(prompts.replace(",", "")) * 2.5 + 300 * n * 10) / 1e6, abs=1e-4)
    (partly,) = json.loads(score(answers, "--judge-max-calls", 2, *options).stdout)["evaluations"]
    assert f"{n - 2} of 12 answers are left out" in partly["deviations"]["gpt"]
    assert any("max_calls" in problem for problem in partly["problems"])
    assert [note.partition(" calls")[0] for note in partly["notes"]] == ["judge: 2", f"judge: not made: {n - 2}"]
    lines = tmp_path / "lines.jsonl"
    done = score(answers, "--per-item", lines, "--judge", '{"prices": [1, 1]}')
    assert len(server.calls) == n and set(server.paid.values()) == {1}
    assert f"judge: {n - 2} calls (2 replies from the cache)" in " ".join(done.stdout.split())
    assert done.exit_code == 0 and ", cost 0.00" in done.stdout and "judge: a model at http" in done.stdout
    verdicts = [json.loads(line)["detail"].get("verdict") for line in lines.read_text().splitlines()]
    assert verdicts[:6] == ["same", "superset", "irrelevant differences", "subset", "disagreement", "no answer"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--judge", "[1]", r"judge is '\[1\]'; allowed: a dict, or a JSON object"),
        ("--judge", '{"speed": 1}', "unknown limit 'speed'"),
    ],
)
def test_options_of_the_command(answers: Path, option: str, value: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        raise score(answers, option, value).exception or AssertionError
