"""Counts the calls of a run, and holds further ones after a limit or an interrupt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

IN_JUDGE: ContextVar[bool] = ContextVar("in_judge", default=False)
"""Whether a judge makes the current call. Judges have their own limits, so a run's do not apply."""


class CallGate:
    """Counts calls, and holds those after a limit.

    A held call waits until it is cancelled. A reply that was paid for is written to the log only
    when its question has ended, so the gate also knows which questions have a reply and have not
    ended.

    Attributes:
        most: the number of calls that may be sent. None for no limit.
        asker: returns the question for which the code that runs now makes a call, or None.
        on_change: called when a call is held or has ended, and when a question has ended.
        is_closed: whether no further call may be sent, whatever their number.
        sent: the number of calls so far.
        in_flight: the number of sent calls that have no reply yet.
        waiting: the number of calls that are held.
        kept_back: questions with a held call, which cannot end.
        replied: the other questions with a reply that have not ended.
    """

    def __init__(
        self,
        most: int | None,
        asker: Callable[[], str | None],
        on_change: Callable[[], None],
    ) -> None:
        self.most, self.asker, self.on_change = most, asker, on_change
        self.is_closed = False
        self.sent = self.in_flight = self.waiting = 0
        self.kept_back: set[str] = set()
        self.replied: set[str] = set()

    @property
    def is_busy(self) -> bool:
        """Tell whether a reply is still to come or to be written."""
        return bool(self.in_flight or self.replied)

    def close(self) -> None:
        """Let no further call pass."""
        self.is_closed = True

    async def wait_if_closed(self) -> None:
        """Hold the next call forever if the gate is closed."""
        if not self.is_closed:
            return
        import anyio

        asker = self.asker()
        if asker:
            self.kept_back.add(asker)
            self.replied.discard(asker)
        self.waiting += 1
        self.on_change()
        await anyio.sleep_forever()

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Reserve a call, and release it when it has ended."""
        # There is no await between the comparison and the count, so no other task can run.
        if self.most is not None and self.sent >= self.most:
            self.close()
        await self.wait_if_closed()
        self.sent += 1
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
            self.on_change()

    def note_reply(self) -> None:
        """Note that the question that is asked now has a reply."""
        asker = self.asker()
        if asker and asker not in self.kept_back:
            self.replied.add(asker)

    def note_end(self, asker: str) -> None:
        """Note that a question has ended, and that its replies are written."""
        self.replied.discard(asker)
        self.on_change()


# The gate of the run in progress, or none.
_GATES: list[CallGate] = []


@contextmanager
def gated_calls(gate: CallGate) -> Iterator[None]:
    """Let this gate count the calls that clients make within ``limited_replies``."""
    _GATES[:] = [gate]
    try:
        yield
    finally:
        _GATES.clear()


def gate_of_run() -> CallGate | None:
    """Return the gate for the call that is made now. None outside of a run, and for a judge's call."""
    if IN_JUDGE.get() or not _GATES:
        return None
    return _GATES[0]
