"""Replies that are too large end while they are read, with or without compression."""

from __future__ import annotations

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
from qabench.llm.client import ChatClient
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest, Outcome
from qabench.llm.retry import RetryPolicy
from qabench.llm.running import run_sync
from qabench.llm.transport import max_reply_bytes

pytest.importorskip("openai", reason="needs the extra judge")
MEBIBYTE = 1 << 20


class HugeServer:
    """Sends ``body`` up to ``times`` times with every reply, and counts the bytes that were taken."""

    def __init__(self, status: int, body: bytes, times: int, headers: dict[str, str]) -> None:
        self.sent = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
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
def asked(tmp_path: Path) -> Iterator[Any]:
    servers = []

    def ask(status: int, body: bytes, times: int = 1, **headers: str) -> tuple[HugeServer, Outcome]:
        server = HugeServer(status, body, times, {name.replace("_", "-"): value for name, value in headers.items()})
        servers.append(server)
        url = f"http://127.0.0.1:{server.server.server_port}/v1"
        cache = ReplyCache(tmp_path / "replies.sqlite")
        client = ChatClient(Endpoint(url, "k"), cache, retry=RetryPolicy(0), max_reply_bytes=MEBIBYTE)
        return server, run_sync(client.complete([ChatRequest("m", (("user", "q"),))]))[0]

    yield ask
    for server in servers:
        server.server.shutdown()
        server.server.server_close()


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_reply_of_300_mb_is_not_read(asked: Any, status: int) -> None:
    server, outcome = asked(status, b" " * MEBIBYTE, 300)
    assert outcome.reason == "the reply is larger than 1 MiB (QABENCH_MAX_REPLY_MB)"
    assert server.sent < 40 * MEBIBYTE  # what the buffers of both sides hold


@pytest.mark.parametrize("status", [200, 500])
def test_a_gzip_bomb_is_not_expanded(asked: Any, status: int) -> None:
    bomb = gzip.compress(b" " * (200 * MEBIBYTE))
    _, outcome = asked(status, bomb, Content_Encoding="gzip")
    assert outcome.reason == "the reply is larger than 1 MiB (QABENCH_MAX_REPLY_MB)"


def test_a_compressed_reply_is_read(asked: Any) -> None:
    body = gzip.compress(json.dumps(completion("x" * 500_000)).encode())
    _, outcome = asked(200, body, Content_Encoding="gzip")
    assert outcome.reply is not None and outcome.reply.text == "x" * 500_000


def test_the_limit_is_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max_reply_bytes() == 16 * MEBIBYTE
    monkeypatch.setenv("QABENCH_MAX_REPLY_MB", "2")
    assert max_reply_bytes() == 2 * MEBIBYTE
    for wrong in ("0", "-1", "x", "²", "9" * 5000):
        monkeypatch.setenv("QABENCH_MAX_REPLY_MB", wrong)
        with pytest.raises(InputError, match="QABENCH_MAX_REPLY_MB"):
            max_reply_bytes()
