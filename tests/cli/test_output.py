"""Progress says how much time is left."""

from typing import Any

import pytest

from qabench.cli import output
from qabench.cli.output import progress_bar, time_left


@pytest.mark.parametrize(
    ("seconds", "done", "remaining", "text"),
    [
        (4.9, 100, 100, ""),  # too early
        (10, 0, 100, ""),  # nothing was done
        (10, 5, 0, ""),
        (10, 10, 30, ", about 30 s left"),
        (10, 1, 30, ", about 5 min left"),
        (100, 1, 200, ", about 6 h left"),
    ],
)
def test_the_estimate(seconds: float, done: int, remaining: int, text: str) -> None:
    assert time_left(seconds, done, remaining) == text


def test_what_was_there_before_does_not_count(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """52 of 194 answers are kept: the speed is that of the others."""
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    # A test before this one may have run a command with --quiet.
    monkeypatch.setitem(output._STATE, "quiet", False)
    with progress_bar("Asked", "questions") as show:
        show(52, 194)
        now[0] = 10.0
        show(62, 194)
    assert capsys.readouterr().err.startswith("Asked: 62 of 194 questions, about 2 min left\n")
