"""Replies that were paid for are kept when a run is interrupted or reaches a limit, also without a cache."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from openai_server import Fault, OpenAIServer, completion

from qabench.benchmarks.fanoutqa import BENCHMARK as FANOUTQA
from qabench.benchmarks.felm import BENCHMARK as FELM
from qabench.errors import QabenchError
from qabench.llm.caller import Prices
from qabench.runs.log import read_run
from qabench.runs.running import resume, start
from qabench.runs.watching import WAITING, Interrupted, Watch

PROBE = 1  # the short call before the first question. Each call has 110 tokens
CLOSED_BOOK = FANOUTQA.setting("closed-book")


@pytest.fixture
def arguments(server: OpenAIServer, tmp_path: Path) -> dict[str, Any]:
    task_args = {"config": "sample", "prompt": "qabench"}
    return {"base_url": server.base_url, "log_dir": tmp_path, "cache": False, "task_args": task_args}


def interrupted_at(server: OpenAIServer, calls: int, number: int = signal.SIGINT, times: int = 1) -> threading.Event:
    """Interrupt this process when the server has got so many calls, and return what releases their replies."""
    release = threading.Event()

    def fault(call: int, body: object) -> Fault | None:
        if call < PROBE:
            return None
        if call == PROBE + calls - 1:
            for _ in range(times):
                os.kill(os.getpid(), number)
        return Fault(hold=release)

    server.fault = fault
    return release


@pytest.mark.quick
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_replies_in_flight(
    number: int, server: OpenAIServer, arguments: dict[str, Any], tmp_path: Path
) -> None:
    release = interrupted_at(server, 3, number)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if text == WAITING:
            release.set()

    watch = Watch(tmp_path, say=say)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted) as raised:
        start(FANOUTQA, CLOSED_BOOK, "m", watch=watch, max_connections=3, **arguments)
    assert raised.value.exit_code == 128 + number and WAITING in said
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert watch.log and len(server.calls) == PROBE + 3
    assert read_run(watch.log).counts()["answered"] == 3
    server.fault = lambda call, body: None
    done = read_run(resume(watch.log, task_args={"prompt": "qabench"}, base_url=server.base_url))
    assert done.counts()["answered"] == 12 and len(server.calls) == 2 * PROBE + 12
    assert max(server.paid.values()) == 1 or sorted(server.paid.values())[-2] == 1  # the first, short call twice


@pytest.mark.quick
def test_a_second_interrupt_does_not_wait(server: OpenAIServer, arguments: dict[str, Any], tmp_path: Path) -> None:
    release = interrupted_at(server, 2)

    def say(text: str) -> None:
        if text == WAITING:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(Interrupted):
            start(FELM, FELM.settings[0], "m", watch=Watch(tmp_path, say=say), max_connections=2, **arguments)
    finally:
        release.set()
    assert len(server.calls) == PROBE + 2


@pytest.mark.quick
def test_an_interrupt_does_not_wait_for_repeated_calls(
    server: OpenAIServer, arguments: dict[str, Any], tmp_path: Path
) -> None:
    def fault(call: int, body: object) -> Fault | None:
        if call == PROBE + 1:
            os.kill(os.getpid(), signal.SIGINT)
        return Fault(503, {"Retry-After": "600"}, body={}) if call >= PROBE else None

    server.fault = fault
    with pytest.raises(Interrupted):
        start(FELM, FELM.settings[0], "m", watch=Watch(tmp_path), max_connections=2, max_retries=9, **arguments)
    assert len(server.calls) == PROBE + 2


@pytest.mark.quick
@pytest.mark.parametrize("limit", [{"max_cost": 2e-4, "prices": Prices(1, 1)}, {"token_budget": 200}, {"max_calls": 3}])
def test_the_reply_that_reaches_a_limit_is_kept(
    limit: dict[str, Any], server: OpenAIServer, arguments: dict[str, Any], tmp_path: Path
) -> None:
    watch = Watch(tmp_path, **limit)
    with pytest.raises(QabenchError, match=r"the run was stopped: the (limit|budget)"):
        start(FANOUTQA, CLOSED_BOOK, "m", watch=watch, max_connections=2, **arguments)
    assert watch.log
    answered = read_run(watch.log).counts()["answered"]
    assert answered == len(server.calls) - PROBE in (1, 2)
    assert watch.done == answered  # questions that are cancelled are not asked


@pytest.mark.quick
def test_a_limit_that_the_last_reply_reaches_stops_nothing(
    server: OpenAIServer, arguments: dict[str, Any], tmp_path: Path
) -> None:
    watch = Watch(tmp_path, max_cost=2e-4, prices=Prices(1, 1))
    log = start(FANOUTQA, CLOSED_BOOK, "m", watch=watch, limit=1, **arguments)
    assert read_run(log).counts()["answered"] == 1 and read_run(log).status == "success"


SOLVERS = """
import anyio
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.solver import solver

@solver
def parallel():
    async def solve(state, generate):
        async with anyio.create_task_group() as calls:
            for text in ("a", "b"):
                calls.start_soon(get_model().generate, [ChatMessageUser(content=text)])
        return state
    return solve

@solver
def two_turns():
    async def solve(state, generate):
        state = await generate(state)
        await anyio.sleep(0.05)
        return await generate(state)
    return solve
"""


@pytest.mark.parametrize(
    ("solver", "limit", "options"),
    [
        # The call that is kept back belongs to the question whose other call is answered.
        ("parallel", {"max_calls": PROBE + 1}, {"max_connections": 2, "max_samples": 1}),
        # The calls that are kept back hold all connections, and a question with a reply needs one.
        ("two_turns", {"token_budget": 200}, {"max_connections": 1, "max_samples": 4}),
    ],
)
def test_no_answered_question_keeps_a_run_alive_at_its_limit(
    solver: str,
    limit: dict[str, Any],
    options: dict[str, Any],
    server: OpenAIServer,
    arguments: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qabench.runs.watching.SECONDS_TO_WRITE", 0.2)
    path = tmp_path / "solvers.py"
    path.write_text(SOLVERS)
    # A run that waits forever fails here, with another message.
    interrupts = [threading.Timer(60 + i, os.kill, (os.getpid(), signal.SIGINT)) for i in range(2)]
    for timer in interrupts:
        timer.start()
    try:
        with pytest.raises(QabenchError, match="the run was stopped"):
            watch = Watch(tmp_path, **limit)
            start(FANOUTQA, CLOSED_BOOK, "m", watch=watch, solver=f"{path}@{solver}", **options, **arguments)
    finally:
        for timer in interrupts:
            timer.cancel()


@pytest.mark.quick
def test_a_reply_without_what_is_beside_its_text_is_kept(
    server: OpenAIServer, arguments: dict[str, Any], tmp_path: Path
) -> None:
    """And limits count an estimate where a server does not say what it counted."""
    bare = {name: value for name, value in completion("Mars").items() if name not in ("model", "usage")}
    server.fault = lambda call, body: Fault(body=bare) if call else None
    watch = Watch(tmp_path, max_cost=1e9, prices=Prices(1, 1))
    log = start(FANOUTQA, CLOSED_BOOK, "m", watch=watch, limit=2, **arguments)
    assert [record.answer for record in read_run(log).records] == ["Mars", "Mars"]
    assert watch.replies == PROBE + 2 and watch.tokens > 110 + 2 * 20
    again = Watch(tmp_path, token_budget=111)
    with pytest.raises(QabenchError, match="the budget of 111 tokens"):
        start(FANOUTQA, CLOSED_BOOK, "m", watch=again, max_connections=1, **arguments)
    assert again.log and 1 <= read_run(again.log).counts()["answered"] <= 2


@pytest.mark.quick
def test_an_error_of_a_gateway_with_a_good_status_is_repeated(
    server: OpenAIServer, arguments: dict[str, Any], tmp_path: Path
) -> None:
    error = Fault(200, body={"error": {"message": "overloaded", "code": 529}})
    server.fault = lambda call, body: error if call == PROBE else None
    log = start(FELM, FELM.settings[0], "m", limit=1, max_retries=2, **arguments)
    assert read_run(log).counts()["answered"] == 1 and len(server.calls) == PROBE + 2


def test_a_limit_ends_a_run_with_the_systems_ctrl_c_handler(
    server: OpenAIServer, arguments: dict[str, Any], tmp_path: Path
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with pytest.raises(QabenchError, match="the run was stopped"):
            start(FELM, FELM.settings[0], "m", watch=Watch(tmp_path, max_calls=2), max_connections=1, **arguments)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)
