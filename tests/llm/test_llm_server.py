"""Client and judge against a real OpenAI-compatible server: ``transformers serve`` with a tiny model made here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import served_model

from qabench.answers import UNANSWERED
from qabench.benchmarks.fanoutqa.judge import judge_answers, judge_for
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Caller, run_sync
from qabench.llm.endpoint import resolve_endpoint
from qabench.llm.exchange import ChatRequest

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """(base URL, model) of a running server."""
    pytest.importorskip("openai", reason="needs the extra judge")
    with served_model(tmp_path_factory.mktemp("served")) as running:
        yield running


def test_concurrent_calls_get_their_own_replies(served: tuple[str, str], tmp_path: Path) -> None:
    base_url, model = served
    requests = [
        ChatRequest(
            model, (("system", "s"), ("user", f"question {i} \u00e9\ud800")), {"temperature": 0, "max_tokens": 12}
        )
        for i in range(24)
    ]
    alone = Caller(resolve_endpoint(base_url), "m", concurrency=1).client(ReplyCache(tmp_path / "alone.sqlite"))
    together = Caller(resolve_endpoint(base_url), "m").client(ReplyCache(tmp_path / "together.sqlite"))
    one_by_one = run_sync(alone.complete(requests))
    outcomes = run_sync(together.complete(requests))
    assert together.calls == alone.calls == 24
    assert [o.reply and o.reply.text for o in outcomes] == [o.reply and o.reply.text for o in one_by_one]
    for outcome in outcomes:
        assert outcome.reply
        assert outcome.reply.finish_reason in ("stop", "length")
        assert outcome.reply.completion_tokens and outcome.reply.completion_tokens <= 12
        assert model in str(outcome.reply.model)
    assert together.completion_tokens == sum(o.reply.completion_tokens or 0 for o in outcomes if o.reply)
    again = Caller(resolve_endpoint(base_url), "m").client(ReplyCache(tmp_path / "together.sqlite"))
    assert [o.reply for o in run_sync(again.complete(requests))] == [o.reply for o in outcomes]
    assert again.calls == 0


def test_the_judge_scores_a_real_models_replies(served: tuple[str, str], cache: Path) -> None:
    base_url, model = served
    judge = judge_for(model, base_url, parameters={"max_tokens": 30}, max_calls=30)
    questions, references = [f"q{i}" for i in range(8)], [{"a": i} for i in range(8)]
    predictions = [*(f"answer {i}" for i in range(7)), UNANSWERED]
    assert len(judge.requests(questions, references, predictions)) == 7
    run = judge_answers(questions, references, predictions, judge)
    counts = run.as_dict()["counts"]
    # Random weights: almost no reply has a verdict, and the others are listed with the model's text.
    assert counts["questions"] == counts["scored"] == 8
    assert all(judgment.reply for judgment in run.per_question[:7])
    assert (run.usage.calls, run.usage.retried) == (7, 0)
    again = judge_answers(questions, references, predictions, judge)
    assert (again.usage.calls, again.usage.cached, again.per_question) == (0, 7, run.per_question)


def test_a_missing_model_is_reported_once(served: tuple[str, str], tmp_path: Path) -> None:
    base_url, _ = served
    client = Caller(resolve_endpoint(base_url), "m").client(ReplyCache(tmp_path / "x.sqlite"))
    (outcome,) = run_sync(client.complete([ChatRequest("no/such-model", (("user", "q"),))]))
    assert outcome.reply is None
    assert outcome.reason and "HTTP 4" in outcome.reason
    assert client.calls == 1
