"""Replies that are too large end while they are read, with or without compression, for judges and in runs."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from openai_server import completion

from qabench.errors import InputError
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Caller, run_sync
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest, Outcome, limited_replies, max_reply_bytes
from qabench.runs.probe import models_at

pytest.importorskip("openai", reason="needs the extra judge")

import httpx2

MEBIBYTE = 1 << 20
BOMB = gzip.compress(b" " * (50 * MEBIBYTE), 1)


class HugeServer:
    """Sends ``body`` up to ``times`` times with every reply, and counts the bytes that were taken."""

    def __init__(self, status: int, body: bytes, times: int, headers: dict[str, str]) -> None:
        self.sent = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body) * times), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for _ in range(times):
                        self.wfile.write(body)
                        outer.sent += len(body)
                except OSError:  # the client went away
                    pass

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def served() -> Iterator[Any]:
    servers = []

    def serve(status: int, body: bytes, times: int = 1, **headers: str) -> tuple[HugeServer, str]:
        """The server and its base URL."""
        server = HugeServer(status, body, times, {name.replace("_", "-"): value for name, value in headers.items()})
        servers.append(server)
        return server, f"http://127.0.0.1:{server.server.server_port}/v1"

    yield serve
    for server in servers:
        server.server.shutdown()
        server.server.server_close()


@pytest.fixture
def asked(served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("QABENCH_MAX_REPLY_MB", "1")

    def ask(*arguments: Any, **headers: str) -> tuple[HugeServer, Outcome]:
        server, url = served(*arguments, **headers)
        cache = ReplyCache(tmp_path / "replies.sqlite")
        client = Caller(Endpoint(url, "k"), "m", retries=0).client(cache)
        return server, run_sync(client.complete([ChatRequest("m", (("user", "q"),))]))[0]

    return ask


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_reply_of_300_mb_is_not_read(asked: Any, status: int) -> None:
    server, outcome = asked(status, b" " * MEBIBYTE, 300)
    assert outcome.reason == "the reply is larger than 1 MiB (QABENCH_MAX_REPLY_MB)"
    assert server.sent < 40 * MEBIBYTE  # what the buffers of both sides hold


@pytest.mark.parametrize("status", [200, 500])
def test_a_gzip_bomb_is_not_expanded(asked: Any, status: int) -> None:
    _, outcome = asked(status, BOMB, Content_Encoding="gzip")
    assert outcome.reason == "the reply is larger than 1 MiB (QABENCH_MAX_REPLY_MB)"


def test_a_compressed_reply_is_read(asked: Any) -> None:
    body = gzip.compress(json.dumps(completion("x" * 500_000)).encode())
    _, outcome = asked(200, body, Content_Encoding="gzip")
    assert outcome.reply is not None and outcome.reply.text == "x" * 500_000


def of_inspect(url: str, **options: Any) -> Any:
    """The reply to Inspect's client, which reads the replies in ``qabench run``."""
    model = pytest.importorskip("inspect_ai.model", reason="needs the extra run")
    one = model.get_model("openai-api/qabench/m", base_url=url, api_key="k", memoize=False, **options)

    async def ask() -> Any:
        try:
            with limited_replies():
                return await one.generate("q", config=model.GenerateConfig(max_retries=0))
        finally:
            await one.api.aclose()

    return asyncio.run(ask())


@pytest.mark.slow  # imports Inspect, as the next two
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("stream", [False, True])
def test_a_run_does_not_read_300_mb(served: Any, status: int, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MAX_REPLY_MB", "1")
    before = httpx2.AsyncClient.send
    server, url = served(status, b" " * MEBIBYTE, 300)
    with pytest.raises(Exception, match=r"larger than 1 MiB \(QABENCH_MAX_REPLY_MB\)"):
        of_inspect(url, stream=stream)
    assert server.sent < 40 * MEBIBYTE
    assert httpx2.AsyncClient.send is before


@pytest.mark.slow
def test_a_run_does_not_expand_a_gzip_bomb(served: Any) -> None:
    _, url = served(200, BOMB, Content_Encoding="gzip")
    with pytest.raises(Exception, match="larger than 16 MiB"):
        of_inspect(url)


@pytest.mark.slow
def test_a_run_reads_a_compressed_reply(served: Any) -> None:
    body = gzip.compress(json.dumps(completion("x" * 500_000)).encode())
    assert of_inspect(served(200, body, Content_Encoding="gzip")[1]).completion == "x" * 500_000


def test_a_list_of_models_of_300_mb_is_not_read(served: Any) -> None:
    server, url = served(200, b" " * MEBIBYTE, 300)
    assert models_at(url) == []
    assert server.sent < 60 * MEBIBYTE  # 16 MiB, and the buffers


def test_the_limit_is_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max_reply_bytes() == 16 * MEBIBYTE
    monkeypatch.setenv("QABENCH_MAX_REPLY_MB", "2")
    assert max_reply_bytes() == 2 * MEBIBYTE
    for wrong in ("0", "-1", "x", "²", "9" * 5000):
        monkeypatch.setenv("QABENCH_MAX_REPLY_MB", wrong)
        with pytest.raises(InputError, match="QABENCH_MAX_REPLY_MB"):
            max_reply_bytes()
