"""A gate keeps back calls, and knows which replies are still to come or to be written."""

import asyncio

import pytest

from qabench.llm.call_gate import IN_JUDGE, CallGate, gate_of_run, gated_calls

pytestmark = pytest.mark.quick


def test_a_gate_is_busy_until_the_question_of_a_reply_has_ended() -> None:
    changes: list[bool] = []
    gate = CallGate(None, lambda: "q1", lambda: changes.append(gate.is_busy))

    async def answered() -> None:
        async with gate.call():
            assert gate.is_busy
            gate.note_reply()

    asyncio.run(answered())
    gate.note_end("q1")
    assert changes == [True, False] and gate.sent == 1


@pytest.mark.parametrize("most", [0, None])
def test_a_closed_gate_keeps_back_every_call(most: int | None) -> None:
    gate = CallGate(most, lambda: "q1", lambda: None)
    gate.note_reply()
    if most is None:
        gate.close()

    async def kept_back() -> None:
        async with gate.call():
            raise AssertionError("the call was sent")

    async def cancelled() -> None:
        call = asyncio.create_task(kept_back())
        await asyncio.sleep(0.01)
        call.cancel()

    asyncio.run(cancelled())
    # Its question cannot end without the call, so nobody waits for it.
    assert (gate.waiting, gate.sent, gate.is_busy) == (1, 0, False)


def test_calls_of_judges_pass_no_gate() -> None:
    gate = CallGate(0, lambda: None, lambda: None)
    assert gate_of_run() is None
    with gated_calls(gate):
        assert gate_of_run() is gate
        token = IN_JUDGE.set(True)
        assert gate_of_run() is None
        IN_JUDGE.reset(token)
    assert gate_of_run() is None
