"""The same answers through metrics, predictions, runs and logs: equal scores, to the last digit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra run")

import answer_styles
from openai_server import Fault, OpenAIServer, completion
from scripted_model import Reply, figures, in_order, run, text

import qabench
from qabench.answers import loads
from qabench.benchmarks import benchmark
from qabench.benchmarks.fanoutqa import BENCHMARK
from qabench.benchmarks.fanoutqa.judge import judge_answers, judge_for
from qabench.benchmarks.fanoutqa.questions import read_questions
from qabench.benchmarks.fanoutqa.tasks import fanoutqa_closed_book
from qabench.data.predictions import read_predictions
from qabench.runs.log import read_run

FANOUTQA = benchmark("fanoutqa")
FAULTS: dict[int, Reply] = {
    3: "",
    5: text("I cannot speak about The Hobbit, 1998.", "content_filter"),
    7: TimeoutError(),
    8: text("cut off in the mid", "max_tokens"),
}


def compare(config: str, ids: Sequence[str], replies: Sequence[Reply], lemmatizer: str, tmp_path: Path) -> int:
    """Scores the replies in all ways; returns the number of compared scores."""
    questions = read_questions(config)
    rows = [questions.by_id[i] for i in ids]
    by_question = {row["question"]: reply for row, reply in zip(rows, replies, strict=True)}

    def script(messages: Any) -> Reply:
        return by_question[messages[0].text.partition("Question: ")[2]]

    log = run(fanoutqa_closed_book(config, ids=list(ids), lemmatizer=lemmatizer, prompt="qabench"), script, tmp_path)
    inspect = figures(log)
    scored = [(sample.scores or {})["fanoutqa"] for sample in in_order(log)]
    assert [sample.id for sample in in_order(log)] == list(ids)
    read = read_run(log.location)
    assert {name: score.interval.mean for name, score in read.scores().items()} == inspect

    predictions = [score.answer for score in scored]
    given = {"predictions": predictions, "references": [row["answer"] for row in rows]}
    acc = qabench.load_metric("fanout_acc").compute(**given, lemmatizer=lemmatizer)
    rouge = qabench.load_metric("fanout_rouge").compute(**given)
    parts = {kind: rouge[kind] for kind in ("rouge1", "rouge2", "rougeL")}
    official = {"acc": {"loose": acc["loose"], "strict": acc["strict"]}, "rouge": parts}
    assert BENCHMARK.official_shape(read) == official
    whole = qabench.load_metric("fanoutqa").compute(**given, lemmatizer=lemmatizer)
    assert {name: whole[name] for name in official} == official

    lines = [{"id": id, "answer": answer} for id, answer in zip(ids, predictions, strict=True) if answer is not None]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if len(ids) == len(questions.rows):
        evaluation = BENCHMARK.evaluate(config, read_predictions(file), lemmatizer=lemmatizer)
        assert BENCHMARK.official_shape(evaluation) == official
        assert [dict(record.scores) for record in evaluation.records] == [dict(score.value) for score in scored]
        signed = evaluation.signatures["acc"].split("|references:")[1].split("|")[0]
        assert f"|references:{signed}|" in read.signatures["acc"]
    return len(inspect) * (len(ids) + 1)


@pytest.mark.parametrize("style", answer_styles.STYLES)
def test_the_sample_in_every_style(style: Callable[..., str], tmp_path: Path, compared: Callable[[str], None]) -> None:
    rows = read_questions("sample").rows
    replies: list[Reply] = list(answer_styles.answers([{"answer": loads(row["answer"])} for row in rows], style))
    for position, fault in FAULTS.items():
        replies[position] = fault
    n = compare("sample", [row["id"] for row in rows], replies, "simplemma", tmp_path)
    compared(f"{n} scores of the 12 questions of the sample, style {style.__name__}")


# Answer -> how the judge replies: a verdict, or a reply without a readable one. The last call fails.
JUDGE = {
    "right": Fault(body=completion("Same facts.\nC")),
    "wrong": Fault(body=completion("D")),
    "unreadable": Fault(body=completion("It is the same")),  # ends with e, so it officially scores 1
    "empty": Fault(body=completion("")),
    "refused": Fault(body=completion(None, refusal="no")),
    "filtered": Fault(body=completion("", finish_reason="content_filter")),
    "cut": Fault(body=completion("The B", finish_reason="length")),
    "failed": Fault(500, body={"error": {"message": "boom"}}),
}
OFFICIAL = [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, None, 0.0, 0.0, 0.0, 0.0]  # the last four are unanswered
READABLE = [1.0, 0.0, None, None, None, None, None, None, 0.0, 0.0, 0.0, 0.0]


@pytest.fixture
def judge_server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    pytest.importorskip("openai", reason="needs the extra judge")
    with OpenAIServer() as server:
        server.fault = lambda number, body: next(
            fault for answer, fault in JUDGE.items() if f"\n{answer}\n" in body["messages"][-1]["content"]
        )
        monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", server.base_url)
        monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "k")
        yield server


def test_the_judge_on_every_path(judge_server: OpenAIServer, tmp_path: Path) -> None:
    questions = read_questions("sample")
    answers: list[Any] = [*JUDGE, *[None] * (12 - len(JUDGE))]
    ids = [row["id"] for row in questions.rows]
    options: dict[str, Any] = {"prompt": "qabench", "retries": 0}
    lines = [{"id": id, "answer": answer} for id, answer in zip(ids, answers, strict=True) if answer is not None]
    means = (3 / 11, 11, 1 / 6, 6)

    evaluation = BENCHMARK.evaluate("sample", read_predictions(lines), families=["judge"], judge=options)
    assert [record.scores.get("gpt") for record in evaluation.records] == OFFICIAL
    assert [record.scores.get("gpt_readable") for record in evaluation.records] == READABLE
    assert BENCHMARK.official_shape(evaluation) == {"gpt": 3 / 11}
    scores = evaluation.scores()
    assert [(score.interval.mean, score.n) for score in scores.values()] == [means[:2], means[2:]]
    said = evaluation.deviations(scores["gpt"])
    assert "1 of 12 answers are left out" in said and "judge prompt: qabench's own, not the authors'" in said
    problems = [problem.partition(": ")[0] for problem in evaluation.problems]
    assert problems.count("1 x the call of the judge failed") == 1
    assert [text.partition(" x ")[2] for text in problems].count("no readable verdict of the judge") > 1  # by reason

    rows = [questions.by_id[id] for id in ids]
    texts, references = [row["question"] for row in rows], [loads(row["answer"]) for row in rows]
    judged = judge_answers(texts, references, answers, judge_for(**options))
    assert (judged.as_dict()["gpt"], len(judged.scores)) == means[:2]
    metric = {"predictions": answers, "references": [row["answer"] for row in rows], "questions": texts}
    alone = qabench.load_metric("fanout_judge").compute(**metric, judge=options)
    assert (alone["gpt"], alone["counts"]["scored"], alone["gpt_readable"], alone["counts"]["readable"]) == means
    whole = qabench.load_metric("fanoutqa").compute(**metric, judge=options, lemmatizer="simplemma")
    assert (whole["gpt"], whole["judge"]["gpt_readable"]) == (3 / 11, 1 / 6)
    assert "1 of 12 answers are left out" in alone["deviations"] and set(alone["deviations"]) <= set(
        whole["deviations"]
    )

    by_question = dict(zip(texts, answers, strict=True))

    def script(messages: Any) -> Reply:
        return by_question[messages[0].text.partition("Question: ")[2]] or RuntimeError("down")

    task = fanoutqa_closed_book("sample", metrics="judge", prompt="qabench", judge=options)
    read = read_run(run(task, script, tmp_path).location)
    assert [record.scores.get("gpt") for record in read.records] == OFFICIAL
    assert {name: (s.interval.mean, s.n) for name, s in read.scores().items()} == {
        name: (s.interval.mean, s.n) for name, s in scores.items()
    }
    assert "1 of 12 answers are left out" in read.deviations(read.scores()["gpt"])


def test_a_judge_that_is_down_gives_no_score(judge_server: OpenAIServer, tmp_path: Path) -> None:
    judge_server.fault = lambda number, body: Fault(500, body={"error": {"message": "boom"}})
    lines = [{"id": row["id"], "answer": "x"} for row in read_questions("sample").rows]
    options = {"prompt": "qabench", "retries": 0}
    evaluation = BENCHMARK.evaluate("sample", read_predictions(lines), families=["judge"], judge=options)
    assert "all 12 calls failed: HTTP 500" in (evaluation.unscored or "")
    assert evaluation.scores() == {} and BENCHMARK.official_shape(evaluation) == {}
