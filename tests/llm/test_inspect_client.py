"""Judges at providers of Inspect AI: the same cache, limits and one-line errors as on a server."""

from pathlib import Path
from typing import Any

import pytest
from scripted_model import scripted, text

from qabench.benchmarks.fanoutqa.judge import judge_answers, judge_from
from qabench.errors import InputError
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import caller_for
from qabench.llm.endpoint import JUDGE_BASE_URL, inspect_endpoint
from qabench.llm.exchange import ChatRequest
from qabench.llm.inspect_client import InspectClient
from qabench.llm.inspect_providers import check_provider
from qabench.llm.routing import client_for


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("qabench.llm.client.FIRST_WAIT", 0.01)
    monkeypatch.delenv(JUDGE_BASE_URL, raising=False)
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path))


def requests_for(*texts: str, **parameters: Any) -> list[ChatRequest]:
    return [ChatRequest("scripted/model", (("system", "S"), ("user", each)), parameters) for each in texts]


def scripted_client(tmp_path: Path, **limits: Any) -> Any:
    client = client_for(caller_for("scripted/model", **limits), ReplyCache(tmp_path / "replies.sqlite"))
    assert isinstance(client, InspectClient)
    return client


def test_replies_are_cached_for_all_processes(tmp_path: Path) -> None:
    scripted(lambda messages: f"re: {messages[-1].text}")
    client = scripted_client(tmp_path)
    texts = [f"q{number}\ud800" for number in range(20)]  # a lone surrogate cannot be sent
    outcomes = client.complete(requests_for(*texts, *texts, temperature=0))
    assert [each.reply.text for each in outcomes] == [f"re: q{number}\ufffd" for number in range(20)] * 2
    assert client.calls == 20 and client.prompt_tokens > 0
    again = scripted_client(tmp_path)
    assert all(each.cached for each in again.complete(requests_for(*texts, temperature=0)))
    assert again.calls == 0
    # Another parameter is another request.
    assert not again.complete(requests_for("q0", temperature=1))[0].cached


def test_calls_are_limited(tmp_path: Path) -> None:
    scripted(lambda messages: "C")
    client = scripted_client(tmp_path, max_calls=3, concurrency=1)
    reasons = [each.reason for each in client.complete(requests_for(*"abcde"))]
    assert client.calls == 3 and reasons.count(None) == 3
    assert [reason for reason in reasons if reason] == ["not sent: the limit of 3 calls (max_calls) was reached"] * 2


def test_finish_reasons_are_those_of_servers(tmp_path: Path) -> None:
    scripted(lambda messages: text("", "content_filter") if messages[-1].text == "a" else text("C", "max_tokens"))
    replies = [each.reply for each in scripted_client(tmp_path).complete(requests_for("a", "b"))]
    assert [each.finish_reason for each in replies] == ["content_filter", "length"]


def test_failures_are_one_line(tmp_path: Path) -> None:
    class Rejected(Exception):
        status_code = 401
        message = "invalid key\nsecond line"

    def reject(messages: Any) -> str:
        raise Rejected

    scripted(reject)
    client = scripted_client(tmp_path, concurrency=1)
    reasons = [each.reason for each in client.complete(requests_for("a", "b"))]
    assert reasons[0] == "HTTP 401: invalid key"
    assert client.calls == 1 and reasons[1].startswith("not sent: the endpoint refuses all calls (HTTP 401")


def test_transient_failures_are_repeated(tmp_path: Path) -> None:
    class Busy(Exception):
        status_code = 503
        message = "busy"

    replies = iter([Busy(), Busy(), "C"])

    def answer(messages: Any) -> str:
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    scripted(answer)
    client = scripted_client(tmp_path, concurrency=1)
    assert client.complete(requests_for("a"))[0].reply.text == "C"
    assert client.calls == 3


def test_a_provider_that_has_answered_may_come_back(tmp_path: Path) -> None:
    scripted(["C", ConnectionError("Connection refused"), "C"])
    client = scripted_client(tmp_path, concurrency=1)
    outcomes = client.complete(requests_for("a", "b"))
    assert [outcome.reply.text for outcome in outcomes] == ["C", "C"] and client.calls == 3


def test_unknown_providers_and_options_are_named(tmp_path: Path) -> None:
    client = client_for(caller_for("nosuch/model"), ReplyCache(tmp_path / "replies.sqlite"))
    with pytest.raises(InputError, match=r"the model nosuch/model cannot be used: .*nosuch"):
        client.complete([ChatRequest("nosuch/model", (("user", "a"),))])
    scripted(lambda messages: "C")
    with pytest.raises(InputError, match="no generation option 'foo'"):
        scripted_client(tmp_path).complete(requests_for("a", foo=1))


def test_names_on_servers_may_have_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    assert caller_for("openai/gpt-oss-20b", "http://localhost:8000/v1").endpoint.base_url == "http://localhost:8000/v1"
    assert caller_for("gpt-4o").endpoint.base_url == "https://api.openai.com/v1"
    assert caller_for("anthropic/claude").endpoint.base_url == "inspect:anthropic"
    monkeypatch.setenv(JUDGE_BASE_URL, "http://localhost:8000/v1")
    assert caller_for("anthropic/claude").endpoint.base_url == "http://localhost:8000/v1"
    with pytest.raises(InputError, match="model_args are for Inspect AI models"):
        caller_for("gpt-4o", model_args={"a": 1})


def test_other_weights_and_addresses_are_other_replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"1")
    arguments = {"model_path": str(tmp_path / "model"), "api_key": "sk-secret-1234567890"}
    before = inspect_endpoint("hf/local", arguments)
    assert "secret" not in repr(before) and before == inspect_endpoint("hf/local", arguments)
    (tmp_path / "model" / "weights").write_bytes(b"12")
    assert inspect_endpoint("hf/local", arguments) != before
    plain = inspect_endpoint("anthropic/claude", {})
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:1")
    assert inspect_endpoint("anthropic/claude", {}) != plain


def test_the_judge_takes_any_model(tmp_path: Path) -> None:
    scripted(lambda messages: "C" if "right" in messages[-1].text else "D")
    judge = judge_from(None, model="scripted/model", prompt="qabench")
    judged = judge_answers(["q", "r"], ["ref", "ref"], ["right", "bad"], judge)
    assert judged.scores == [1, 0] and judged.absent is None
    assert judge.signature()["judge_endpoint"] == "inspect:scripted"


def test_providers_of_other_packages_are_imported_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspect_ai._util import registry
    from inspect_ai.model import ModelAPI, modelapi

    def import_packages() -> None:
        modelapi(name="other_provider")(type("Other", (ModelAPI,), {}))

    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    monkeypatch.setattr(registry, "ensure_entry_points", import_packages)
    check_provider("other_provider/m")
    with pytest.raises(InputError, match=r"has no provider 'other_provder' \(did you mean 'other_provider'"):
        check_provider("other_provder/m")
