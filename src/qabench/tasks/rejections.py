"""Counts permanently rejected calls, so that a run can stop instead of failing on every question."""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH = 3  # consecutive rejected calls, without a reply in between


@dataclass
class Rejections:
    """The rejected calls since the last reply."""

    count: int = 0
    reason: str = ""

    def note(self, reason: str) -> None:
        """Counts a call that retries cannot fix, such as one with a wrong key."""
        self.count += 1
        self.reason = reason

    def reset(self) -> None:
        """Called for every reply, and when a run starts."""
        self.count, self.reason = 0, ""

    def enough(self) -> str | None:
        """Why the run should stop; None if it should not."""
        return self.reason if self.count >= ENOUGH else None


rejections = Rejections()
