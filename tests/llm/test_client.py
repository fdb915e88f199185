"""The client over HTTP on loopback: faults, retries, limits, and never paying twice."""

import asyncio
import json
import os
import signal
import socket
import threading
import time
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from openai_server import Fault, OpenAIServer, completion

from qabench.benchmarks.fanoutqa.judge import judge_from
from qabench.errors import InputError, QabenchError
from qabench.io.http import HttpClient
from qabench.llm import client as client_module
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Caller, Prices
from qabench.llm.client import ChatClient
from qabench.llm.endpoint import HUGGINGFACE, NO_KEY, OPENAI, Endpoint, key_for_typed, resolve_endpoint
from qabench.llm.exchange import ChatOutcome, ChatRequest, read_reply
from qabench.llm.routing import client_for

FAULTS = {
    "429": Fault(429, body={"error": {"message": "slow down"}}),
    "429 with Retry-After": Fault(429, {"Retry-After": "0.05"}, {"error": {"message": "slow down"}}),
    "429 with a date": Fault(429, {"Retry-After": formatdate(time.time() - 5, usegmt=True)}, {}),
    "500": Fault(500, body="oops"),
    "dropped": Fault(drop=True),
    "truncated": Fault(body=completion("C"), truncate=40),
    "malformed": Fault(body='{"choices": ['),
    "empty": Fault(body=""),
    "a list": Fault(body=[]),
    "no choices": Fault(body={"choices": []}),
    "wrong content": Fault(body=completion(None) | {"choices": [{"message": {"content": 7}}]}),
    "an error as 200": Fault(body={"error": {"message": "provider down", "code": 502}}),
}
HUGE = completion("C") | {"usage": {"prompt_tokens": 10**400, "completion_tokens": 10**400}}
DAMAGED = {
    "204": (Fault(204, body=""), "the reply is not a JSON object: ''"),
    "205": (Fault(205, body=""), "the reply is not a JSON object: ''"),
    "206": (Fault(206, body="{"), "the reply is not a JSON object: '{'"),
    "idna": (Fault(400, {"Content-Type": "text/html; charset=idna"}, "\u00e4"), "HTTP 400: \u00e4"),
    "idna alone": (Fault(400, {"Content-Type": "charset=idna"}, "\u00e4"), "HTTP 400: \u00e4"),
    "hex": (Fault(400, {"Content-Type": "text/html; charset=hex"}, "zz"), "HTTP 400: zz"),
    "HTML": (Fault(200, {"Content-Type": "text/html"}, "<html>"), "the reply is not a JSON object: '<html>'"),
    "truncated": (FAULTS["truncated"], "peer closed connection without sending complete message body"),
    "not gzip": (Fault(headers={"Content-Encoding": "gzip"}, body="not gzip"), "Error -3 while decompressing data"),
    "Location": (Fault(302, {"Location": "http://[::1"}, ""), "Invalid URL in location header"),
    "another host": (Fault(307, {"Location": "http://127.0.0.2:9/x"}, ""), "redirect to another host: http://127"),
    "HTTP 304": (Fault(304, body=""), "HTTP 304"),
}


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.llm.client.FIRST_WAIT", 0.01)


def requests_for(*texts: str, **parameters: Any) -> list[ChatRequest]:
    return [ChatRequest("m", (("user", text),), parameters) for text in texts]


def client_of(server: OpenAIServer, tmp_path: Path, **options: Any) -> ChatClient:
    options.setdefault("retries", 3)
    return client_for(
        Caller(Endpoint(server.base_url, "secret"), "m", **options), ReplyCache(tmp_path / "replies.sqlite")
    )


def test_replies_come_in_order_and_are_paid_for_once(server: OpenAIServer, tmp_path: Path) -> None:
    server.reply = lambda body: "re: " + body["messages"][0]["content"]
    texts = [f"q{i}\ud800" for i in range(60)]  # a lone surrogate cannot be sent
    seen: list[tuple[int, int]] = []
    client = client_of(server, tmp_path)
    outcomes = client.complete(requests_for(*texts, *texts), lambda done, total: seen.append((done, total)))
    assert [outcome.reply and outcome.reply.text for outcome in outcomes] == [f"re: q{i}\ufffd" for i in range(60)] * 2
    assert seen[0] == (0, 60) and seen[-1] == (60, 60)
    assert len(server.calls) == client.calls == 60 and (client.prompt_tokens, client.completion_tokens) == (6000, 600)
    again = client_of(server, tmp_path)
    assert all(outcome.cached for outcome in again.complete(requests_for(*texts)))
    assert (len(server.calls), again.calls) == (60, 0)


def test_no_more_calls_than_allowed_are_in_flight(server: OpenAIServer, tmp_path: Path) -> None:
    server.delay = 0.03
    client_of(server, tmp_path, concurrency=7).complete(requests_for(*map(str, range(50))))
    assert 1 < server.max_in_flight <= 7


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_retried(server: OpenAIServer, tmp_path: Path, name: str) -> None:
    server.fault = lambda number, body: FAULTS[name] if number == 0 else None
    client = client_of(server, tmp_path)
    (outcome,) = client.complete(requests_for("q"))
    assert outcome.reply and outcome.reply.text.endswith("C")
    assert client.calls == len(server.calls) == client.usage([]).retried + 1 == 2


@pytest.mark.parametrize("drip", [0.0, 0.05])
def test_a_late_reply_is_retried(server: OpenAIServer, tmp_path: Path, drip: float) -> None:
    """No byte, or single bytes, within the timeout of the first call that the server receives."""
    client, finished = client_of(server, tmp_path, timeout=1.0, retries=50), threading.Event()

    def fault(number: int, body: object) -> Fault | None:
        transport: Any = client.http.session._transport
        # of later calls
        transport.limits = replace(transport.limits, seconds=3600, silent_seconds=3600)
        if number:
            return None
        return Fault(body=completion("C" * 10_000), drip=drip) if drip else Fault(hold=finished)

    server.fault = fault
    (outcome,) = client.complete(requests_for("q"))
    finished.set()
    assert outcome.reply and outcome.reply.text.endswith("C")
    assert len(server.calls) == 2 and client.calls == client.usage([]).retried + 1 >= 2


@pytest.mark.parametrize("name", ["429", "dropped", "malformed"])
def test_a_lasting_fault_affects_no_other_reply(server: OpenAIServer, tmp_path: Path, name: str) -> None:
    server.fault = lambda number, body: FAULTS[name] if body["messages"][0]["content"] == "bad" else None
    good, bad = client_of(server, tmp_path).complete(requests_for("good", "bad"))
    assert good.reply and bad.reply is None and bad.reason and len(server.calls) == 5
    # Failures are not cached: the next run tries again.
    server.fault = lambda number, body: None
    assert all(outcome.reply for outcome in client_of(server, tmp_path).complete(requests_for("good", "bad")))
    assert server.paid == {"good": 1, "bad": 1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [({"error": {"message": "context too long"}}, "HTTP 400: context too long"),
     ({"detail": "Server is pinned to m"}, "HTTP 400: Server is pinned to m"),
     ({"detail": [{"loc": ["body"], "msg": "Field required"}]}, "HTTP 400: Field required"),
     ({"error": "no such model"}, "HTTP 400: no such model"),
     ("Bad request\nmore", "HTTP 400: Bad request")],
)  # fmt: skip
def test_a_rejected_request_is_not_repeated(server: OpenAIServer, tmp_path: Path, body: Any, reason: str) -> None:
    server.fault = lambda number, _: Fault(400, body=body)
    (outcome,) = client_of(server, tmp_path).complete(requests_for("q"))
    assert (outcome.reply, outcome.reason) == (None, reason) and len(server.calls) == 1


@pytest.mark.parametrize("name", DAMAGED)
def test_every_damaged_answer_is_one_line(server: OpenAIServer, tmp_path: Path, name: str) -> None:
    fault, reason = DAMAGED[name]
    server.fault = lambda number, body: fault
    (outcome,) = client_of(server, tmp_path, retries=0).complete(requests_for("q"))
    assert outcome.reply is None and str(outcome.reason).startswith(reason) and "\n" not in str(outcome.reason)


@pytest.mark.parametrize("charset", ["utf-16", "idna"])
def test_a_page_in_a_wrong_encoding_is_read(server: OpenAIServer, charset: str) -> None:
    server.models = Fault(200, {"Content-Type": f"charset={charset}"}, "no mark")
    assert isinstance(HttpClient().get(f"{server.base_url}/models").text, str)


@pytest.mark.parametrize("marked", [True, False])
def test_replies_in_utf_16_are_not_paid_again(server: OpenAIServer, tmp_path: Path, marked: bool) -> None:
    body = json.dumps({"choices": [{"message": {"content": "yes"}}]}).encode("utf-16" if marked else "utf-8")
    server.fault = lambda number, request: Fault(200, {"Content-Type": "application/json; charset=utf-16"}, body)
    (outcome,) = client_of(server, tmp_path).complete(requests_for("q"))
    assert outcome.reply and outcome.reply.text == "yes" and len(server.calls) == 1


def test_an_unknown_parameter_is_not_tried_again(server: OpenAIServer, tmp_path: Path) -> None:
    client = client_of(server, tmp_path)
    (outcome,) = client.complete([replace(requests_for("q")[0], parameters={"temprature": 0})])
    assert "'temprature'" in str(outcome.reason) and client.calls == 1 and not server.calls


@pytest.mark.parametrize("text", ["Name or service not known", "No address associated with hostname"])
def test_an_unknown_host_is_not_asked_again(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        calls.append(1)
        raise socket.gaierror(socket.EAI_NONAME, text)

    calls: list[int] = []
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    client = client_for(Caller(Endpoint("http://no-such-host.invalid/v1", "k"), "m"), ReplyCache(tmp_path / "r.sqlite"))
    (outcome,) = client.complete(requests_for("q"))
    assert f"{text}: http" in str(outcome.reason) and len(calls) == 1


def test_what_is_not_text_in_a_reply_is_left_out() -> None:
    message = {"content": [{"type": "text", "text": "a"}, "b", {"type": "image"}]}
    reply = read_reply(json.dumps({"choices": [{"message": message}], "usage": "n/a"}))
    assert (reply.text, reply.prompt_tokens) == ("a", None)


@pytest.mark.slow  # imports Inspect
@pytest.mark.parametrize("name", sorted(DAMAGED.keys() - {"another host"}))
def test_every_damaged_answer_of_a_run_is_one_line(server: OpenAIServer, name: str) -> None:
    plan = pytest.importorskip("qabench.runs.models", reason="needs the extra run")
    fault, reason = DAMAGED[name]
    server.models = Fault(body={"data": [{"id": "m"}]})
    server.fault = lambda number, body: fault
    with pytest.raises(QabenchError, match="does not answer: ") as caught:
        plan.probe("openai-api/qabench/m", server.base_url)
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_a_redirect_loop_is_not_retried(server: OpenAIServer, tmp_path: Path) -> None:
    server.fault = lambda number, body: Fault(307, {"Location": "/v1/chat/completions"}, "")
    client = client_of(server, tmp_path)
    (outcome,) = client.complete(requests_for("q"))
    assert "redirect loop" in str(outcome.reason) and client.calls == len(server.calls) == 1


def test_numbers_of_tokens_have_a_range(server: OpenAIServer, tmp_path: Path) -> None:
    server.fault = lambda number, body: Fault(body=HUGE)
    client = client_of(server, tmp_path, prices=Prices(1.0, 1.0))
    (outcome,) = outcomes = client.complete(requests_for("q"))
    assert outcome.reply and outcome.reply.completion_tokens is None and 0 < (client.usage(outcomes).cost or 0) < 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(401, body={"error": {"message": "bad key"}}),
        Fault(404, body={"error": {"message": "no such model"}}),
        Fault(429, body={"error": {"message": "no money", "code": "insufficient_quota"}}),
    ],
)
def test_permanent_failures_stop_the_run(server: OpenAIServer, tmp_path: Path, fault: Fault) -> None:
    server.fault = lambda number, body: fault
    outcomes = client_of(server, tmp_path, concurrency=2).complete(requests_for(*map(str, range(40))))
    assert len(server.calls) <= 4 and all(outcome.reply is None for outcome in outcomes)
    assert sum("not sent: the endpoint refuses all calls" in str(outcome.reason) for outcome in outcomes) >= 36


def test_a_server_that_never_answered_is_not_waited_for(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        server.fault = lambda number, body: Fault(200, {"Connection": "close"}, completion("C"))
        client = client_of(server, tmp_path, concurrency=2)
        assert all(outcome.reply for outcome in client.complete(requests_for("first")))
    (answered_before,) = client.complete(requests_for("it may come back"))
    assert client.calls == 5 and "Connection refused: http://127.0.0.1" in str(answered_before.reason)
    client = client_of(server, tmp_path, concurrency=2)
    outcomes = client.complete(requests_for(*map(str, range(9))))
    assert client.calls <= 2
    assert str(outcomes[-1].reason).startswith(
        "not sent: the endpoint refuses all calls ([Errno 111] Connection refused: http"
    )


def test_too_long_waits_are_failures(server: OpenAIServer, tmp_path: Path) -> None:
    server.fault = lambda number, body: Fault(429, {"Retry-After": "86400"}, {"error": {"message": "tomorrow"}})
    (outcome,) = client_of(server, tmp_path).complete(requests_for("q"))
    assert outcome.reason and "tomorrow" in outcome.reason and len(server.calls) == 1


def test_max_calls_counts_retries_and_stops(server: OpenAIServer, tmp_path: Path) -> None:
    server.fault = lambda number, body: FAULTS["500"] if number == 0 else None
    outcomes = client_of(server, tmp_path, max_calls=5).complete(requests_for(*map(str, range(20))))
    assert len(server.calls) == 5 and sum(outcome.reply is not None for outcome in outcomes) == 4
    reasons = [outcome.reason for outcome in outcomes if outcome.reply is None]
    assert all("the limit of 5 calls (max_calls) was reached" in str(reason) for reason in reasons)
    # Cached replies do not need calls or a budget.
    outcomes = client_of(server, tmp_path, max_calls=0).complete(requests_for(*map(str, range(20))))
    assert sum(outcome.reply is not None for outcome in outcomes) == 4 and len(server.calls) == 5


@pytest.mark.parametrize("inside_a_loop", [False, True])
def test_a_second_ctrl_c_is_clean(
    server: OpenAIServer, tmp_path: Path, inside_a_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = threading.Event()
    server.fault = lambda number, body: Fault(hold=finished, drop=True) if number >= 3 else None
    client = client_of(server, tmp_path, concurrency=2)

    def press() -> None:
        server.wait_for_calls(5)
        os.kill(os.getpid(), signal.SIGINT)

    def press_again(text: str, file: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(client_module, "write_line", press_again)

    async def notebook() -> None:
        client.complete(requests_for(*map(str, range(9))))

    # ignored if the tests run in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        if inside_a_loop:
            # Not asyncio.run, which handles the signal itself; a notebook's loop does not.
            loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(notebook())
            finally:
                loop.close()
        else:
            client.complete(requests_for(*map(str, range(9))))
    server.fault = lambda number, body: None
    again = client_of(server, tmp_path)
    assert all(outcome.reply for outcome in again.complete(requests_for(*map(str, range(9)))))
    finished.set()
    assert again.calls == 6 and set(server.paid.values()) == {1}


@pytest.mark.quick
@pytest.mark.parametrize(("first_alone", "calls"), [(True, 1), (False, 3)])
def test_ctrl_c_keeps_the_replies_in_flight(
    first_alone: bool, calls: int, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, said = threading.Event(), []

    def fault(number: int, body: object) -> Fault:
        if number == calls - 1:
            os.kill(os.getpid(), signal.SIGINT)
        return Fault(hold=release)

    def say(text: str, file: object) -> None:
        said.append(text)
        release.set()

    server.fault = fault
    monkeypatch.setattr(client_module, "write_line", say)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    requests = requests_for(*map(str, range(9)))
    with pytest.raises(KeyboardInterrupt):
        client_of(server, tmp_path, concurrency=3).complete(requests, first_alone=first_alone)
    assert said == [client_module.WAITING] and len(server.calls) == calls
    server.fault = lambda number, body: None
    again = client_of(server, tmp_path)
    assert all(outcome.reply for outcome in again.complete(requests))
    assert again.calls == 9 - calls and set(server.paid.values()) == {1}


def test_ctrl_c_does_not_wait_for_repetitions(server: OpenAIServer, tmp_path: Path) -> None:
    def fault(number: int, body: object) -> Fault:
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return Fault(503, {"Retry-After": "100"}, body={})

    server.fault = fault
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        client_of(server, tmp_path, concurrency=2).complete(requests_for("a", "b", "c"))
    assert len(server.calls) == 2


def test_the_synchronous_form_works_in_a_running_loop(server: OpenAIServer, tmp_path: Path) -> None:
    async def notebook() -> list[ChatOutcome]:
        return client_of(server, tmp_path).complete(requests_for("q"))

    assert asyncio.run(notebook())[0].reply


def test_openai_variables_are_not_used(server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET"):
        monkeypatch.setenv(name, "do-not-send-this")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer do-not-send-this")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    client_of(server, tmp_path).complete(requests_for("q", temperature=0, seed=31415))
    (call,) = server.calls
    assert "do-not-send-this" not in str(call.headers) and call.headers["authorization"] == "Bearer secret"
    assert call.body == {"model": "m", "messages": [{"role": "user", "content": "q"}], "temperature": 0, "seed": 31415}


def test_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "never")
    for name in ("FANOUTQA_OPENAI_API_KEY", "FANOUTQA_OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    assert resolve_endpoint().base_url == OPENAI and "FANOUTQA_OPENAI_API_KEY" in str(resolve_endpoint().why_unusable)
    assert "HF_TOKEN" in str(resolve_endpoint("huggingface").why_unusable)
    local = resolve_endpoint("http://localhost:8000/v1/chat/completions/")
    assert local == Endpoint("http://localhost:8000/v1", NO_KEY, None)
    monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", " sk-1\n")
    monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", "https://example.org/v1/")
    assert resolve_endpoint() == Endpoint("https://example.org/v1", "sk-1") and "sk-1" not in repr(resolve_endpoint())
    # OpenAI's key must not be sent to Hugging Face.
    assert resolve_endpoint("huggingface").why_unusable
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_2")
    assert resolve_endpoint("huggingface") == Endpoint(HUGGINGFACE, "hf_2")
    assert resolve_endpoint("huggingface", "given").api_key == "given"
    with pytest.raises(InputError, match="API key"):
        resolve_endpoint(OPENAI, "sk\u2026")


def test_keys_are_bound_to_hosts(server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FANOUTQA_OPENAI_API_BASE", raising=False)
    monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "sk-1")
    assert resolve_endpoint(OPENAI).api_key == resolve_endpoint().api_key == "sk-1"
    assert key_for_typed(server.base_url) == "sk-1" and key_for_typed("huggingface") is key_for_typed(None) is None
    server.fault = lambda number, body: Fault(401, body={"error": "no key"})
    # a task's argument, which a log can contain
    judge = judge_from({"base_url": server.base_url, "model": "m"})
    client = client_for(judge.caller, ReplyCache(tmp_path / "replies.sqlite"))
    (outcome,) = client.complete(requests_for("q"))
    assert f"set it to {server.base_url}" in str(outcome.reason)
    assert all("sk-1" not in str(call.headers) for call in server.calls) and server.calls
    monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", "http://localhost:8000/v1")
    for other in ("http://localhost:8001/v1", "https://localhost:8000/v1", "http://localhost.example:8000/v1", OPENAI):
        assert resolve_endpoint(other).api_key == NO_KEY and key_for_typed(other) is None
    assert resolve_endpoint("http://LOCALHOST:8000/other").api_key == "sk-1"


@pytest.mark.parametrize(("name", "value"), [("concurrency", 0), ("timeout", 0), ("max_calls", -1), ("retries", -1)])
def test_options_out_of_range(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{name} (is )?{value}"):
        Caller(Endpoint(OPENAI, "k"), "m", **{name: value})
