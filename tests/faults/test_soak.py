"""A short soak; ``python tests/faults/soak.py`` is the long one."""

from __future__ import annotations

import pytest
from soak import soak


def test_a_short_soak(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra run")
    run, judge, score = soak(60, 1)
    assert (run.kills, judge.kills) == (1, 1) and score.kills <= 1  # so few answers may be scored before the kill
