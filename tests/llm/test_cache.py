"""The cache of replies: keys, claims, damage, several processes, and kill -9."""

import json
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import Fault, OpenAIServer

from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Caller
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest, Reply
from qabench.llm.routing import client_for

REQUEST = ChatRequest("m", (("system", "s"), ("user", "u")), {"temperature": 0, "seed": 1})
URL = "http://a/v1"
KEY = REQUEST.key(URL)
REPLY = Reply("C \ud800", "stop", None, "m-1", "fp", 3, 4)
WORKER = """
import sys
from pathlib import Path
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Caller
from qabench.llm.routing import client_for
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest

url, path, count = sys.argv[1:]
requests = [ChatRequest("m", (("user", str(i)),)) for i in range(int(count))]
client = client_for(Caller(Endpoint(url, "k"), "m", concurrency=8), ReplyCache(Path(path)))
outcomes = client.complete(requests)
print(sum(outcome.reply is not None for outcome in outcomes), client.calls)
"""


def test_every_part_of_a_request_is_in_its_key() -> None:
    messages = [(("system", "s"), ("user", "u ")), (("system", "su"), ("user", "")), (("user", "s"), ("user", "u"))]
    parameters = [{"temperature": 0, "seed": 2}, {"temperature": 0.0, "seed": 1}, {"temperature": 0}]
    others = [replace(REQUEST, model="n"), replace(REQUEST, namespace="system-1")]
    others += [replace(REQUEST, messages=other) for other in messages]
    others += [replace(REQUEST, parameters=other) for other in parameters]
    keys = {KEY, REQUEST.key("http://b/v1"), *(other.key(URL) for other in others)}
    assert len(keys) == len(others) + 2 and replace(REQUEST, parameters={"seed": 1, "temperature": 0}).key(URL) == KEY


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), min_size=2, max_size=2, unique=True))
def test_other_texts_have_other_keys(texts: list[tuple[str, str, str]]) -> None:
    first, second = (ChatRequest(m, (("system", s), ("user", u))).key(URL) for m, s, u in texts)
    assert first != second


def test_the_first_of_two_replies_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x" / "replies.sqlite"
    first, second = ReplyCache(path), ReplyCache(path)
    assert first.find([KEY]) == {} and first.store(KEY, REQUEST, REPLY) == REPLY
    assert second.store(KEY, REQUEST, Reply("D")) == REPLY
    first.close()
    assert first.find([KEY, b"other"]) == second.find([KEY]) == {KEY: REPLY}
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    for cache in (first, second):
        cache.close()


@pytest.mark.parametrize("damage", ["garbage", "wrong table", "a folder"])
def test_a_damaged_file_causes_a_warning(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "replies.sqlite"
    if damage == "garbage":
        path.write_bytes(b"this is no database" * 100)
    elif damage == "a folder":
        path.mkdir()
    else:
        cache = ReplyCache(path)
        cache.store(KEY, REQUEST, REPLY)
        cache.close()
        with sqlite3.connect(path) as connection:
            connection.executescript("DROP TABLE checked_replies; CREATE TABLE checked_replies (other TEXT)")
        connection.close()
    cache = ReplyCache(path)
    with pytest.warns(UserWarning, match=r"cannot be used .* paid for again"):
        assert cache.find([KEY]) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one warning only
        cache.store(KEY, REQUEST, REPLY)
        cache.close()
        assert cache.find([KEY]) == {KEY: REPLY}
    cache.usable = True
    cache.close()


def test_a_full_disk_loses_no_replies_of_the_run(tmp_path: Path) -> None:
    """Not writable from the fifth reply on: the run ends with all replies and a warning."""
    path = tmp_path / "replies.sqlite"
    with OpenAIServer() as server:
        client = client_for(Caller(Endpoint(server.base_url, "k"), "m", concurrency=1), ReplyCache(path))

        def reply(body: dict[str, Any]) -> str:
            if len(server.calls) == 5:
                with sqlite3.connect(path) as other:
                    fail = "SELECT RAISE(FAIL, 'full');"
                    other.execute(f"CREATE TRIGGER full BEFORE INSERT ON checked_replies BEGIN {fail} END")
                other.close()
            return "C"

        server.reply = reply
        requests = [ChatRequest("m", (("user", str(i)),)) for i in range(10)]
        with pytest.warns(UserWarning, match="full"):
            outcomes = client.complete(requests)
        assert all(outcome.reply for outcome in outcomes)
        assert all(outcome.cached for outcome in client.complete(requests[4:])) and set(server.paid.values()) == {1}
    kept = ReplyCache(path)
    assert len(kept.find(request.key(server.base_url) for request in requests)) == 4
    kept.close()
    client.cache.usable = True
    client.cache.close()


@pytest.fixture
def server(server: OpenAIServer) -> OpenAIServer:
    server.delay = 0.05
    return server


def start(server: OpenAIServer, path: Path, count: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WORKER, server.base_url, str(path), str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_run_loses_only_calls_in_flight(server: OpenAIServer, tmp_path: Path) -> None:
    path, killed = tmp_path / "replies.sqlite", threading.Event()
    server.fault = lambda number, body: Fault(hold=killed) if number >= 50 else None
    with start(server, path, 120) as first:
        server.wait_for_calls(58)  # 50 replies, and 8 calls in flight
        first.send_signal(signal.SIGKILL)
    killed.set()
    with start(server, path, 120) as resumed:
        printed, _ = resumed.communicate()
    assert printed.split() == ["120", "70"]
    assert len(server.calls) == 128 and len(server.paid) == 120  # none lost
    assert sum(times > 1 for times in server.paid.values()) <= 8 and max(server.paid.values()) <= 2


def test_the_cache_holds_no_key_and_no_prompt(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    request = ChatRequest("m", (("user", "a private prompt"),))
    client_for(Caller(Endpoint(server.base_url, "sk-secret"), "m"), ReplyCache(path)).complete([request])
    with sqlite3.connect(path) as connection:
        ((reply,),) = connection.execute("SELECT reply FROM checked_replies")
    connection.close()
    assert json.loads(reply)["text"].endswith("C")
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"sk-secret" not in content and b"private prompt" not in content


def test_a_process_waits_for_another_one_of_the_same_judge(server: OpenAIServer, tmp_path: Path) -> None:
    path, requests = tmp_path / "replies.sqlite", [ChatRequest("m", (("user", str(i)),)) for i in range(5)]
    client = client_for(Caller(Endpoint(server.base_url, "k"), "m", timeout=3600), ReplyCache(path))
    waiting = threading.Event()
    server.fault = lambda number, body: Fault(hold=waiting) if number < 5 else None
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(client.complete, requests)
        server.wait_for_calls(5)
        with start(server, path, 5) as other:
            assert other.stderr is not None
            # ends with the process
            waits = any("another process is calling m" in line for line in other.stderr)
            waiting.set()
            printed, errors = other.communicate()
        outcomes = first.result()
    assert waits and printed.split() == ["5", "0"], errors
    assert all(outcome.reply for outcome in outcomes) and server.paid == {str(i): 1 for i in range(5)}


def test_calls_of_one_process_share_its_turn(server: OpenAIServer, tmp_path: Path) -> None:
    caller, released = Caller(Endpoint(server.base_url, "k"), "m", timeout=3600), threading.Event()
    server.fault = lambda number, body: Fault(hold=released)

    requests = [ChatRequest("m", (("user", str(i)),)) for i in range(4)]
    with ThreadPoolExecutor(4) as threads:
        for request in requests:
            threads.submit(client_for(caller, ReplyCache(tmp_path / "replies.sqlite")).complete, [request])
        server.wait_for_calls(4)  # ends only if all four are in flight
        released.set()
    assert server.paid == {str(i): 1 for i in range(4)}
