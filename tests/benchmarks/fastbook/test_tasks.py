"""fastbook's task: the scores of ``qabench fastbook retrieve``, prompts, and the result of each
kind of reply.
"""

import itertools
import json
from pathlib import Path
from typing import Any

from benchmark_tasks import fastbook_rag
from ftfy import fix_text
from scripted_model import run, text

import qabench
from qabench.adapters.files import evaluate
from qabench.benchmarks.fastbook import BENCHMARK
from qabench.benchmarks.fastbook.answer_components import AnswerComponentScores
from qabench.runs.export import predictions
from qabench.runs.log import read_run


def last_words(messages: Any) -> str:
    return " ".join(messages[-1].text.split()[-40:])


def score_of(sample: Any) -> Any:
    return (sample.scores or {})["fastbook"]


def test_passages_are_read_in_order_and_logged(tmp_path: Path) -> None:
    log = run(fastbook_rag("sample", k=2), last_words, tmp_path)
    for sample in log.samples or []:
        detail = score_of(sample).metadata["detail"]
        prompt = sample.messages[0].text
        passages = detail["passages"]
        places = [prompt.index(passage["text"]) for passage in passages]
        assert places == sorted(places) and len(places) == detail["k"] == 2
        assert sample.metadata["question"] in prompt.partition("</passages>")[2]
        scores = [passage["score"] for passage in passages]
        assert scores == sorted(scores, reverse=True)
        (chapter,) = sample.metadata["groups"]["chapter"]
        assert all(passage["id"].startswith(f"{chapter}-c") for passage in passages)
        # Curves over k need only the ranks.
        ranks = tuple(part["rank"] for part in detail["components"])
        curve = AnswerComponentScores((2,), (ranks,), ())
        assert curve.mean("mrr", 2) == score_of(sample).value["mrr@2"]
        assert curve.mean("recall", 2) == score_of(sample).value["recall@2"]
        for part in detail["components"]:
            held = [any(fix_text(context) in fix_text(one["text"]) for context in part["contexts"]) for one in passages]
            assert part["rank"] == (held.index(True) + 1 if any(held) else None)


def test_one_set_of_replies_scores_the_same_everywhere(tmp_path: Path) -> None:
    """Answered, empty, cut-off, refused and failed samples: in runs, files of predictions and
    metrics.
    """
    replies = ["An answer.", "", text("cut", "max_tokens"), text("no", "content_filter"), RuntimeError("down")]
    replies += [TimeoutError()]
    turn = itertools.count()
    log = run(fastbook_rag("sample"), lambda messages: replies[next(turn) % len(replies)], tmp_path)
    ran = read_run(log.location)
    assert log.status == "success"
    assert {record.status for record in ran.records} == {"answered", "empty", "cut off", "refused", "failed"}
    assert all("mrr@10" in record.scores for record in ran.records)
    without = {"empty", "cut off", "refused", "failed"}
    assert {record.scores["rouge1.fscore"] for record in ran.records if record.status in without} == {0.0}
    # as `qabench export` writes them
    rows = [json.loads(line) for line in predictions(ran).splitlines()]
    assert len(rows) == 12
    scored = evaluate(BENCHMARK, "sample", BENCHMARK.read(rows), groups=["retrieval", "rouge"])
    values = [{name: (score.interval.mean, score.n) for name, score in one.scores().items()} for one in (ran, scored)]
    assert values[0] == values[1] and {n for _, n in values[0].values()} == {12}
    metric = qabench.load_metric("answer_component_mrr").compute(
        predictions=[row["passages"] for row in rows],
        references=[question.row["answer_context"] for question in BENCHMARK.load("sample").rows],
    )
    assert metric["mrr@10"] == values[0]["mrr@10"][0]
