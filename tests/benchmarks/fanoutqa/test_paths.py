"""The same answers through metrics, predictions, runs and logs: equal scores, to the last digit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import answer_styles
import pytest
from benchmark_tasks import fanoutqa_closed_book
from openai_server import Fault, OpenAIServer, completion
from question_rows import question_rows
from scripted_model import Reply, run

import qabench
from qabench.adapters.files import evaluate
from qabench.benchmarks.fanoutqa import BENCHMARK
from qabench.benchmarks.fanoutqa.judge import judge_answers, judge_for
from qabench.data.answers import loads
from qabench.data.predictions import read_predictions
from qabench.errors import InputError
from qabench.runs.log import read_run


@pytest.mark.parametrize("style", answer_styles.STYLES)
def test_metrics_score_as_files_in_every_style(style: Callable[..., str]) -> None:
    rows = question_rows("sample")
    answers: list[Any] = answer_styles.answers([{"answer": loads(row["answer"])} for row in rows], style)
    answers[3:5] = ["", None]
    lines = [{"id": row["id"], "answer": text} for row, text in zip(rows, answers, strict=True) if text is not None]
    evaluation = evaluate(BENCHMARK, "sample", read_predictions(lines), lemmatizer="simplemma")
    given = {"predictions": [record.answer for record in evaluation.records]}
    given["references"] = [loads(row["answer"]) for row in rows]
    acc = qabench.load_metric("fanout_acc").compute(**given, lemmatizer="simplemma")
    rouge = qabench.load_metric("fanout_rouge").compute(**given)
    whole = qabench.load_metric("fanoutqa").compute(**given, lemmatizer="simplemma")
    official = BENCHMARK.report().official_shape(evaluation)
    assert official["acc"] == {"loose": acc["loose"], "strict": acc["strict"]} == whole["acc"]
    assert official["rouge"] == {kind: rouge[kind] for kind in ("rouge1", "rouge2", "rougeL")} == whole["rouge"]


# Answer -> how the judge replies: a verdict, or a reply without a readable one. The last call
# fails.
JUDGE = {
    "right": Fault(body=completion("Same facts.\nC")),
    "wrong": Fault(body=completion("D")),
    # ends with e, so it officially scores 1
    "unreadable": Fault(body=completion("It is the same")),
    "empty": Fault(body=completion("")),
    "refused": Fault(body=completion(None, refusal="no")),
    "filtered": Fault(body=completion("", finish_reason="content_filter")),
    "cut": Fault(body=completion("The B", finish_reason="length")),
    "failed": Fault(500, body={"error": {"message": "boom"}}),
}
# the last four are unanswered
OFFICIAL = [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, None, 0.0, 0.0, 0.0, 0.0]
READABLE = [1.0, 0.0, None, None, None, None, None, None, 0.0, 0.0, 0.0, 0.0]


@pytest.fixture
def judge_server(server: OpenAIServer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    server.fault = lambda number, body: next(
        fault for answer, fault in JUDGE.items() if f"\n{answer}\n" in body["messages"][-1]["content"]
    )
    monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", server.base_url)
    monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "k")
    return server


def test_the_judge_on_every_path(judge_server: OpenAIServer, tmp_path: Path) -> None:
    questions = BENCHMARK.load("sample")
    answers: list[Any] = [*JUDGE, *[None] * (12 - len(JUDGE))]
    ids = [question.id for question in questions.rows]
    options: dict[str, Any] = {"prompt": "qabench", "retries": 0}
    lines = [{"id": id, "answer": answer} for id, answer in zip(ids, answers, strict=True) if answer is not None]
    means = (3 / 11, 11, 1 / 6, 6)

    evaluation = evaluate(BENCHMARK, "sample", read_predictions(lines), groups=["judge"], judge=options)
    assert [record.scores.get("gpt") for record in evaluation.records] == OFFICIAL
    assert [record.scores.get("gpt_readable") for record in evaluation.records] == READABLE
    assert BENCHMARK.report().official_shape(evaluation) == {"gpt": 3 / 11}
    scores = evaluation.scores()
    assert [(score.interval.mean, score.n) for score in scores.values()] == [means[:2], means[2:]]
    said = evaluation.deviations(scores["gpt"])
    assert "1 of 12 answers are left out" in said and "judge prompt: qabench's own, not the authors'" in said
    problems = [problem.partition(": ")[0] for problem in evaluation.problems]
    assert problems.count("1 x the call to the judge failed") == 1
    # by reason
    assert [text.partition(" x ")[2] for text in problems].count("no readable verdict by the judge") > 1

    rows = question_rows("sample")
    texts, references = [row["question"] for row in rows], [loads(row["answer"]) for row in rows]
    judged = judge_answers(texts, references, answers, judge_for(**options))
    assert (sum(judged.scores) / len(judged.scores), len(judged.scores)) == means[:2]
    metric = {"predictions": answers, "references": references, "questions": texts}
    alone = qabench.load_metric("fanout_judge").compute(**metric, judge=options)
    assert (alone["gpt"], alone["counts"]["scored"], alone["gpt_readable"], alone["counts"]["readable"]) == means
    whole = qabench.load_metric("fanoutqa").compute(**metric, judge=options, lemmatizer="simplemma")
    assert (whole["gpt"], whole["judge"]["gpt_readable"]) == (3 / 11, 1 / 6)
    assert "1 of 12 answers are left out" in alone["deviations"] and {*alone["deviations"]} <= {*whole["deviations"]}

    by_question = dict(zip(texts, answers, strict=True))

    def script(messages: Any) -> Reply:
        return by_question[messages[0].text.partition("Question: ")[2]] or RuntimeError("down")

    task = fanoutqa_closed_book("sample", scores="judge", prompt="qabench", judge=options)
    read = read_run(run(task, script, tmp_path).location)
    assert [record.scores.get("gpt") for record in read.records] == OFFICIAL
    assert {name: (s.interval.mean, s.n) for name, s in read.scores().items()} == {
        name: (s.interval.mean, s.n) for name, s in scores.items()
    }
    assert "1 of 12 answers are left out" in read.deviations(read.scores()["gpt"])


def test_a_judge_that_is_down_gives_no_score(judge_server: OpenAIServer, tmp_path: Path) -> None:
    judge_server.fault = lambda number, body: Fault(500, body={"error": {"message": "boom"}})
    lines = [{"id": row["id"], "answer": "x"} for row in question_rows("sample")]
    options = {"prompt": "qabench", "retries": 0}
    evaluation = evaluate(BENCHMARK, "sample", read_predictions(lines), groups=["judge"], judge=options)
    assert "all 12 calls failed: HTTP 500" in (evaluation.unscored or "")
    assert evaluation.scores() == {} and BENCHMARK.report().official_shape(evaluation) == {}


@pytest.mark.parametrize(("copies", "message"), [(0, "has no questions"), (2, "occurs more than once; ids must be")])
def test_files_of_questions_that_cannot_be_scored(copies: int, message: str, tmp_path: Path) -> None:
    sample = Path(__file__).parents[3] / "loading_scripts/fanoutqa/sample/questions.json"
    (tmp_path / "q.json").write_text(json.dumps(json.loads(sample.read_text(encoding="utf-8"))[:1] * copies))
    with pytest.raises(InputError, match=message):
        BENCHMARK.load(None, tmp_path / "q.json")
