"""Replies that are too large end while they are read, with or without compression, and so do
circles of redirects.
"""

import asyncio
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai_server import Fault, OpenAIServer, completion

from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Caller
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatOutcome, ChatRequest, limited_replies
from qabench.llm.routing import client_for
from qabench.runs.models import _models_at

MEBIBYTE = 1 << 20
BOMB = gzip.compress(b" " * (50 * MEBIBYTE), 1)
GZIPPED = {"Content-Encoding": "gzip"}


def huge(status: int = 200) -> Fault:
    return Fault(status, body=b" " * MEBIBYTE, times=300)


@pytest.fixture
def outcome_of(server: OpenAIServer, tmp_path: Path) -> Any:

    def ask(fault: Fault) -> ChatOutcome:
        server.fault = lambda number, body: fault
        client = client_for(
            Caller(Endpoint(server.base_url, "k"), "m", retries=0), ReplyCache(tmp_path / "replies.sqlite")
        )
        return client.complete([ChatRequest("m", (("user", "q"),))])[0]

    return ask


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("fault", [huge(), Fault(headers=GZIPPED, body=BOMB)], ids=["300 MB", "gzip bomb"])
def test_too_large_replies_are_not_read(outcome_of: Any, server: OpenAIServer, fault: Fault, status: int) -> None:
    assert outcome_of(replace(fault, status=status)).reason == "too large: more than 16,777,216 bytes"
    assert server.bytes_sent < 60 * MEBIBYTE  # what the buffers of both sides hold


def test_a_compressed_reply_is_read(outcome_of: Any) -> None:
    body = gzip.compress(json.dumps(completion("x" * 500_000)).encode())
    assert outcome_of(Fault(headers=GZIPPED, body=body)).reply.text == "x" * 500_000


def of_inspect(server: OpenAIServer, fault: Fault, stream: bool, retries: int = 0) -> Any:
    """The reply to Inspect's client, which reads the replies in ``qabench run``."""
    server.fault = lambda number, body: fault
    model = pytest.importorskip("inspect_ai.model", reason="needs the extra run")
    one = model.get_model("openai-api/qabench/m", base_url=server.base_url, api_key="k", memoize=False, stream=stream)

    async def ask() -> Any:
        try:
            with limited_replies():
                return await one.generate("q", config=model.GenerateConfig(max_retries=retries))
        finally:
            await one.api.aclose()

    return asyncio.run(ask())


@pytest.mark.slow  # imports Inspect
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("stream", [False, True])
def test_a_run_reads_little(server: OpenAIServer, status: int, stream: bool) -> None:
    before = httpx2.AsyncClient.send
    with pytest.raises(Exception, match="too large: more than 16,777,216 bytes"):
        of_inspect(server, huge(status), stream)
    assert server.bytes_sent < 60 * MEBIBYTE and httpx2.AsyncClient.send is before


CIRCLE = Fault(307, {"Location": "/v1/chat/completions"}, "")


def test_a_circle_of_redirects_is_a_response(server: OpenAIServer) -> None:
    server.fault = lambda number, body: CIRCLE

    async def ask() -> httpx2.Response:
        async with httpx2.AsyncClient(follow_redirects=True) as client:
            return await client.post(f"{server.base_url}/chat/completions", json={"messages": []})

    with limited_replies():
        response = asyncio.run(ask())
    # Clients repeat a request that ends with an error of the network, but not one that was answered
    # with 400.
    assert response.status_code == 400 and "too many redirects: more than 5" in response.text
    assert len(server.calls) == 6


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (
            "http://a.org/v1/completions",
            "redirect from https to http: http://a.org/v1/completions, which is not allowed",
        ),
        (
            "https://b.org/v1/completions",
            "redirect to another host: https://b.org/v1/completions, which is not allowed",
        ),
        ("https://a.org/v2/completions", None),
    ],
)
@pytest.mark.parametrize("package", ["httpx", "httpx2"])
def test_prompts_and_keys_stay_encrypted_on_their_host(package: str, target: str, says: str | None) -> None:
    """httpx removes only the header Authorization from a redirect to another host."""
    httpx = pytest.importorskip(package)
    reached = []

    def answer(request: Any) -> Any:
        reached.append(str(request.url))
        if len(reached) % 2:
            return httpx.Response(307, headers={"Location": target})
        return httpx.Response(200, json=completion("C"))

    async def ask() -> list[Any]:
        transport = httpx.MockTransport(answer)
        async with httpx.AsyncClient(transport=transport, follow_redirects=True, headers={"x-api-key": "k"}) as client:
            return [await client.post("https://a.org/v1/completions", json={}) for _ in range(2 if says is None else 1)]

    with limited_replies():
        responses = asyncio.run(ask())
    first = "https://a.org/v1/completions"
    if says is None:
        assert [response.status_code for response in responses] == [200, 200] and reached == [first, target] * 2
    else:
        (response,) = responses
        assert response.status_code == 400 and says in response.json()["error"]["message"] and reached == [first]


@pytest.mark.slow  # imports Inspect
def test_a_run_does_not_retry_redirects(server: OpenAIServer) -> None:
    with pytest.raises(Exception, match="too many redirects: more than 5"):
        of_inspect(server, CIRCLE, stream=False, retries=3)
    assert len(server.calls) == 6


@pytest.mark.slow  # imports Inspect
def test_an_echoed_key_is_not_written_to_the_log(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_API_KEY", "sk-0123456789")
    echo = gzip.compress(json.dumps({"error": {"message": "sk-0123456789 is wrong"}}).encode())
    with pytest.raises(Exception, match=r"\[redacted\] is wrong") as caught:
        of_inspect(server, Fault(400, headers=GZIPPED, body=echo), stream=False)
    assert "sk-0123456789" not in str(caught.value)


def test_a_list_of_models_of_300_mb_is_not_read(server: OpenAIServer) -> None:
    server.models = huge()
    assert _models_at(server.base_url) == []
    assert server.bytes_sent < 60 * MEBIBYTE  # 16 MiB, and the buffers
