"""Shell completion of benchmarks, configs, settings, metrics and options, as bash asks for it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from qabench.cli import app


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("score fe", ["felm"]),
        ("score fanoutqa --config d", ["dev", "dev_nov23"]),
        ("score fanoutqa --metrics acc,r", ["acc,rouge"]),
        ("score fastbook --format m", ["markdown"]),
        ("compare fanoutqa --metric acc", ["acc.loose", "acc.strict"]),
        ("run fanoutqa --setting c", ["closed-book"]),
        ("run nope --setting c", []),
        ("run felm -T nu", ["num_cons="]),
    ],
)
def test_words_are_completed(words: str, found: list[str]) -> None:
    line = f"qabench {words}"
    count = len(line.split()) - (not line.endswith(" "))
    asked = {"_QABENCH_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(count)}
    result = CliRunner().invoke(app, [], prog_name="qabench", env=asked)
    assert result.stdout.splitlines() == (found or [""])
