"""A loopback server for OpenAI's chat completions, with scripted faults and a log of all calls."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Fault:
    """A fault in the response to one call.

    ``status``, ``headers``, ``body``: that answer (a dict as JSON). ``delay``: seconds before it. ``hold``: no answer
    before this event is set. ``drop``: the connection breaks before a byte. ``truncate``: it breaks after so many bytes
    of the body. ``drip``: seconds between the bytes of the body. ``times``: how often the body is sent.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    delay: float = 0.0
    hold: threading.Event | None = None
    drop: bool = False
    truncate: int | None = None
    drip: float = 0.0
    times: int = 1


@dataclass
class Seen:
    """A received call; ``completed`` once a good reply was sent in full, so that it is paid for."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    completed: bool = False

    @property
    def asked(self) -> str:
        """The user message."""
        return str(self.body["messages"][-1]["content"])


class OpenAIServer:
    """Answers calls with ``reply(body)``, the text of the message; ``fault(number, body)`` may say otherwise.

    Calls are numbered from 0. ``max_in_flight`` is the most that were open at once.
    """

    def __init__(self) -> None:
        self.reply: Callable[[dict[str, Any]], str] = lambda body: "They agree in all.\nC"
        self.fault: Callable[[int, dict[str, Any]], Fault | None] = lambda number, body: None
        self.models = Fault(404, body={})  # the answer to GET, not counted as a call
        self.delay = 0.0
        self.calls: list[Seen] = []
        self.in_flight = self.max_in_flight = self.bytes_sent = 0
        self.lock = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), self._handler())

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def paid(self) -> Counter[str]:
        """How often each user message was answered in full."""
        return Counter(call.asked for call in self.calls if call.completed)

    def wait_for_calls(self, count: int) -> None:
        """Wait until this many calls were received."""
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.calls) >= count, 300), f"{len(self.calls)} calls of {count}"

    def __enter__(self) -> OpenAIServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                try:
                    _answer(self, Seen({}, {}, 0.0), outer.models, outer)
                except OSError:  # the client went away
                    self.close_connection = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    seen = Seen(body, {k.lower(): v for k, v in self.headers.items()}, time.monotonic())
                    fault = outer.fault(len(outer.calls), body) or Fault(delay=outer.delay)
                    outer.calls.append(seen)
                    outer.lock.notify_all()
                    outer.in_flight += 1
                    outer.max_in_flight = max(outer.max_in_flight, outer.in_flight)
                try:
                    _answer(self, seen, fault, outer)
                except OSError:  # the client went away
                    self.close_connection = True
                finally:
                    with outer.lock:
                        outer.in_flight -= 1

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        pass


def completion(text: str | None, model: str = "m", **message: Any) -> dict[str, Any]:
    """The JSON of a good reply."""
    finish = message.pop("finish_reason", "stop")
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": model, "choices": [choice], "usage": usage}


def _answer(handler: BaseHTTPRequestHandler, seen: Seen, fault: Fault, outer: OpenAIServer) -> None:
    time.sleep(fault.delay)
    if fault.hold:
        fault.hold.wait()
    if fault.drop:
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        handler.connection.close()
        raise ConnectionResetError
    good = fault.body is None and fault.status == 200
    body = completion(outer.reply(seen.body), seen.body["model"]) if good else fault.body
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    data = text.encode() if isinstance(text, str) else text
    handler.send_response(fault.status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data) * fault.times))
    for name, value in fault.headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    if fault.drip:
        for i in range(len(data)):
            handler.wfile.write(data[i : i + 1])
            time.sleep(fault.drip)
    elif fault.truncate is not None:
        handler.wfile.write(data[: fault.truncate])
        handler.close_connection = True
        return
    else:
        for _ in range(fault.times):
            handler.wfile.write(data)
            outer.bytes_sent += len(data)
    handler.wfile.flush()
    seen.completed = good
