"""Rules by which chosen requests fail."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field


@dataclass
class Fault:
    """Which requests fail, and how.

    A request counts whose "METHOD /path" the pattern ``match`` is found in; the ``nth`` such one and the ``times - 1``
    after it fail. ``status`` with ``headers``: that answer instead of the right one. ``drop_request_after``: the
    connection breaks after this many bytes of the request's content. ``drop_response_after``: the request takes
    effect, and the connection breaks after so many bytes of the answer's content (0: before the answer).
    ``endless``: the "headers" or the "body" of the answer never end.
    ``shorten_to``: the answer claims to be complete and has so many bytes.
    """

    match: str
    nth: int = 1
    times: int = 1
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop_request_after: int | None = None
    drop_response_after: int | None = None
    shorten_to: int | None = None
    endless: str | None = None
    body: bytes = b"{}"
    seen: int = 0

    def takes(self, line: str) -> bool:
        """Counts the request if it matches; returns whether it must fail."""
        if not re.search(self.match, line):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


class Faults:
    """The active rules; the first matching rule decides."""

    def __init__(self) -> None:
        self.rules: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, match: str, **how: object) -> Fault:
        fault = Fault(match, **how)  # type: ignore[arg-type]
        with self._lock:
            self.rules.append(fault)
        return fault

    def clear(self) -> None:
        with self._lock:
            self.rules.clear()

    def for_request(self, line: str) -> Fault | None:
        with self._lock:
            return next((fault for fault in self.rules if fault.takes(line)), None)
