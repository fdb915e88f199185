"""The cache of replies: keys, claims, damage, several processes, and kill -9."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import Fault, OpenAIServer

from qabench.llm.cache import ReplyCache
from qabench.llm.client import ChatClient
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest, Reply
from qabench.llm.running import run_sync

REQUEST = ChatRequest("m", (("system", "s"), ("user", "u")), {"temperature": 0, "seed": 1})
URL = "http://a/v1"
KEY = REQUEST.key(URL)
REPLY = Reply("C \ud800", "stop", None, "m-1", "fp", 3, 4)


def test_every_part_of_a_request_is_in_its_key() -> None:
    others = [
        replace(REQUEST, model="n"),
        replace(REQUEST, messages=(("system", "s"), ("user", "u "))),
        replace(REQUEST, messages=(("system", "su"), ("user", ""))),
        replace(REQUEST, messages=(("user", "s"), ("user", "u"))),
        replace(REQUEST, parameters={"temperature": 0, "seed": 2}),
        replace(REQUEST, parameters={"temperature": 0.0, "seed": 1}),
        replace(REQUEST, parameters={"temperature": 0}),
        replace(REQUEST, sample=1),
        replace(REQUEST, namespace="system-1"),
    ]
    keys = {KEY, REQUEST.key("http://b/v1"), *(other.key(URL) for other in others)}
    assert len(keys) == len(others) + 2
    assert replace(REQUEST, parameters={"seed": 1, "temperature": 0}).key(URL) == KEY


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), min_size=2, max_size=2, unique=True))
def test_other_texts_have_other_keys(texts: list[tuple[str, str, str]]) -> None:
    one, two = (ChatRequest(m, (("system", s), ("user", u))).key(URL) for m, s, u in texts)
    assert one != two


def test_a_claim_ends_when_settled_released_or_expired(tmp_path: Path) -> None:
    path = tmp_path / "x" / "replies.sqlite"
    one, two = ReplyCache(path, lease=60), ReplyCache(path, lease=60)
    assert one.claim(KEY) is True
    assert two.claim(KEY) is False
    assert one.claim(KEY) is False
    two.release(KEY)  # not its own
    assert two.claim(KEY) is False
    one.release(KEY)
    assert two.claim(KEY) is True
    assert two.settle(KEY, REQUEST, REPLY) == REPLY
    assert one.claim(KEY) == REPLY
    assert one.find([KEY, b"other"]) == {KEY: REPLY}
    assert one.settle(KEY, REQUEST, Reply("D")) == REPLY  # the first reply is kept
    one.close()
    assert one.find([KEY]) == {KEY: REPLY}
    for cache in (one, two):
        cache.close()


def test_the_claim_of_a_killed_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    dead, alive, third = ReplyCache(path, lease=1.5), ReplyCache(path, lease=60), ReplyCache(path)
    assert dead.claim(KEY) is True
    assert alive.claim(KEY) is False
    time.sleep(1.6)
    assert alive.claim(KEY) is True
    dead.renew()  # too late: another owner has it
    assert third.claim(KEY) is False
    for cache in (dead, alive, third):
        cache.close()


def test_a_renewed_claim_holds(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    one, two = ReplyCache(path, lease=1.5), ReplyCache(path)
    assert one.claim(KEY) is True
    one.lease = 60
    one.renew()
    time.sleep(1.6)
    assert two.claim(KEY) is False
    one.close()
    two.close()


def test_many_keys_are_found(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    keys = [bytes([i % 256, i // 256]) for i in range(1203)]
    for key in keys:
        cache.settle(key, REQUEST, REPLY)
    assert len(cache.find(keys)) == 1203
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
        cache.settle(KEY, REQUEST, REPLY)
        cache.close()
        with sqlite3.connect(path) as connection:
            connection.executescript("DROP TABLE checked_replies; CREATE TABLE checked_replies (other TEXT)")
        connection.close()
    cache = ReplyCache(path)
    with pytest.warns(UserWarning, match=r"cannot be used .* paid for again"):
        assert cache.find([KEY]) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one warning only
        assert cache.claim(KEY) is True
        cache.settle(KEY, REQUEST, REPLY)
        cache.close()
        assert cache.claim(KEY) == REPLY
    cache.usable = True
    cache.close()


@pytest.mark.parametrize(
    "change",
    ["reply = '{'", "reply = x'ff'", "reply = 1", "key = CAST(x'00' || substr(key, 2) AS BLOB)", "checksum = ''"],
)
def test_a_damaged_entry_is_called_again(tmp_path: Path, change: str) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.settle(KEY, REQUEST, REPLY)
    cache.close()
    with sqlite3.connect(cache.path) as connection:
        connection.execute(f"UPDATE checked_replies SET {change}")
    connection.close()
    wanted = [KEY, b"\0" + KEY[1:]]
    with pytest.warns(
        UserWarning, match="damaged entries; they are ignored, and their calls are repeated and paid for again"
    ):
        assert cache.find(wanted) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one warning only
        assert cache.claim(KEY) is True
        assert cache.settle(KEY, REQUEST, Reply("new")) == Reply("new")
    assert cache.damaged >= 1
    assert ReplyCache(cache.path).find([KEY]) == {KEY: Reply("new")}
    cache.close()


def test_claims_of_dead_processes_end_at_once(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    code = f"from qabench.llm.cache import *; print(ReplyCache(Path({str(path)!r}), lease=900).claim({KEY!r}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"
    cache = ReplyCache(path)
    assert cache.claim(KEY) is True
    assert ReplyCache(path).claim(KEY) is False  # this process is alive
    cache.close()


def test_claims_end_if_the_clock_is_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, other = (ReplyCache(tmp_path / "replies.sqlite", lease=60) for _ in range(2))
    assert cache.claim(KEY) is True
    now = time.time()
    monkeypatch.setattr("qabench.llm.cache.time.time", lambda: now - 86_400)
    assert other.claim(KEY) is True
    cache.close()
    other.close()


def test_a_full_disk_loses_no_replies_of_the_run(tmp_path: Path) -> None:
    """Not writable from the fifth reply on: the run ends with all replies and a warning."""
    pytest.importorskip("openai", reason="needs the extra judge")
    path = tmp_path / "replies.sqlite"
    with OpenAIServer() as server:
        client = ChatClient(Endpoint(server.base_url, "k"), ReplyCache(path), concurrency=1)

        def reply(body: dict[str, Any]) -> str:
            if len(server.calls) == 5:
                with sqlite3.connect(path) as other:
                    other.execute(
                        "CREATE TRIGGER full BEFORE INSERT ON checked_replies BEGIN SELECT RAISE(FAIL, 'full'); END"
                    )
                other.close()
            return "C"

        server.reply = reply
        requests = [ChatRequest("m", (("user", str(i)),)) for i in range(10)]
        with pytest.warns(UserWarning, match="full"):
            outcomes = run_sync(client.complete(requests))
        assert all(outcome.reply for outcome in outcomes)
        assert all(outcome.cached for outcome in run_sync(client.complete(requests[4:])))
        assert set(server.paid.values()) == {1}
    kept = ReplyCache(path)
    assert len(kept.find(request.key(server.base_url) for request in requests)) == 4
    kept.close()
    client.cache.usable = True
    client.cache.close()


WORKER = """
import sys
from pathlib import Path
from qabench.llm.cache import ReplyCache
from qabench.llm.client import ChatClient
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest
from qabench.llm.running import run_sync

url, path, count, lease = sys.argv[1:]
requests = [ChatRequest("m", (("user", str(i)),)) for i in range(int(count))]
client = ChatClient(Endpoint(url, "k"), ReplyCache(Path(path), lease=float(lease)), concurrency=8)
outcomes = run_sync(client.complete(requests))
print(sum(outcome.reply is not None for outcome in outcomes), client.meter.calls)
"""


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    pytest.importorskip("openai", reason="needs the extra judge")
    with OpenAIServer() as server:
        server.delay = 0.05
        yield server


def start(server: OpenAIServer, path: Path, count: int, lease: float = 2.0) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WORKER, server.base_url, str(path), str(count), str(lease)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONWARNINGS": "error"})


@pytest.mark.slow
def test_a_killed_run_loses_only_calls_in_flight(server: OpenAIServer, tmp_path: Path) -> None:
    path, count = tmp_path / "replies.sqlite", 120
    with start(server, path, count) as killed:
        while len(server.calls) < 50:
            time.sleep(0.005)
        killed.send_signal(signal.SIGKILL)
    while server.in_flight:
        time.sleep(0.01)
    first = len(server.calls)
    with start(server, path, count) as resumed:
        said, _ = resumed.communicate()
    answered, calls = map(int, said.split())
    assert answered == count
    assert len(server.paid) == count  # none lost
    twice = sum(times > 1 for times in server.paid.values())
    assert twice <= 8  # calls in flight
    assert first + calls == len(server.calls) <= count + 8
    assert max(server.paid.values()) <= 2


@pytest.mark.slow
def test_equal_calls_of_processes_are_paid_once(server: OpenAIServer, tmp_path: Path) -> None:
    path, count = tmp_path / "replies.sqlite", 60
    server.fault = lambda number, body: Fault(500, body="oops", delay=0.02) if number % 10 == 3 else None
    with start(server, path, count, 30) as one, start(server, path, count, 30) as two, start(server, path, 30) as three:
        said = [process.communicate()[0].split() for process in (one, two, three)]
    assert [int(answered) for answered, _ in said] == [count, count, 30]
    assert server.paid == {str(i): 1 for i in range(count)}
    assert sum(int(calls) for _, calls in said) == len(server.calls)


def test_the_cache_holds_no_key_and_no_prompt(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    request = ChatRequest("m", (("user", "a private prompt"),))
    run_sync(ChatClient(Endpoint(server.base_url, "sk-secret"), ReplyCache(path)).complete([request]))
    assert json.loads(sqlite3_one(path, "SELECT reply FROM checked_replies"))["text"].endswith("C")
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"sk-secret" not in content and b"private prompt" not in content


def sqlite3_one(path: Path, query: str) -> str:
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute(query).fetchone()[0])
    finally:
        connection.close()
