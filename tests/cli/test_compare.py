"""``qabench compare``: files of predictions, logs, invalid input, and output."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from qabench import loading_scripts
from qabench.cli import app
from qabench.errors import InputError

GENERATIONS = loading_scripts.FOLDER / "fanoutqa/sample/generations"
ANSWERS = [str(GENERATIONS / f"{name}.jsonl") for name in ("careful", "hasty", "rambling")]
SAMPLE = ("--config", "sample", "--lemmatizer", "simplemma")


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def test_a_score_that_no_system_has(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        file.write_text('{"id": "0", "answer": "ALL_CORRECT"}\n')
    with pytest.raises(InputError, match=r"no system has the score f1, .*; choose another with --metric: .*recall"):
        run("compare", "felm", *files, "--config", "sample")


def test_the_tables_and_notes() -> None:
    text = run("compare", "fanoutqa", *ANSWERS, *SAMPLE, "--correction", "bh").stdout
    parts = ("Loose accuracy", "careful - rambling", "corrected p", "no significant difference", "randomization test")
    for part in (*parts, "Benjamini", "hasty: questions without a prediction: 1", "not official", "acc: fanout_acc|"):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fanoutqa", ANSWERS[0], "--config", "sample"], "give at least two systems"),
        (["fanoutqa", ANSWERS[0], ANSWERS[0], "--config", "sample"], "the file was given twice"),
        (["fanoutqa", *ANSWERS, "--metric", "f1"], "has no metric 'f1'; allowed: acc.loose"),
    ],
)
def test_errors_name_the_problem(arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run("compare", *arguments)
