"""A loopback server for OpenAI's chat completions, with scripted faults and a log of all calls."""

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import Loopback


@dataclass
class Fault:
    """A fault in the response to one call.

    ``status``, ``headers``, ``body``: that answer (a dict as JSON). ``delay``: seconds before it.
    ``hold``: no answer before this event is set. ``drop``: the connection breaks before a byte.
    ``truncate``: it breaks after so many bytes of the body. ``drip``: seconds between the bytes of
    the body. ``times``: how often the body is sent.
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


class OpenAIServer(Loopback):
    """Answers calls with ``reply(body)``, the text of the message; ``fault(number, body)`` may say
    otherwise.

    Calls are numbered from 0. ``max_in_flight`` is the most that were open at once.
    """

    protocol = "HTTP/1.1"

    def __init__(self) -> None:
        super().__init__()
        self.reply: Callable[[dict[str, Any]], str] = lambda body: "They agree in all.\nC"
        self.fault: Callable[[int, dict[str, Any]], Fault | None] = lambda number, body: None
        self.models = Fault(404, body={})  # the answer to GET, not counted as a call
        self.delay = 0.0
        self.calls: list[Seen] = []
        self.in_flight = self.max_in_flight = self.bytes_sent = 0
        self.lock = threading.Condition()

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def paid(self) -> Counter[str]:
        """How often each user message was answered in full."""
        return Counter(call.asked for call in self.calls if call.completed)

    def wait_for_calls(self, count: int) -> None:
        """Wait until this many calls were received."""
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.calls) >= count, 300), f"{len(self.calls)} calls of {count}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            return _answer(request, Seen({}, {}, 0.0), self.models, self)
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        with self.lock:
            seen = Seen(body, {name.lower(): value for name, value in request.headers.items()}, time.monotonic())
            fault = self.fault(len(self.calls), body) or Fault(delay=self.delay)
            self.calls.append(seen)
            self.lock.notify_all()
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            _answer(request, seen, fault, self)
        finally:
            with self.lock:
                self.in_flight -= 1


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
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
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
    handler.wfile.flush()
    if fault.drip:
        for i in range(len(data)):
            handler.wfile.write(data[i : i + 1])
            handler.wfile.flush()
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
