"""Counts of planned runs and options of tasks are computed once, and only where nothing can change them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qabench.benchmarks import benchmark
from qabench.cli import app
from qabench.io.files import cache_dir
from qabench.runs import kept as kept_module
from qabench.runs.kept import FOLDER, kept


@pytest.fixture
def released(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_module, "code_version", lambda: "9.9.9")
    monkeypatch.setattr(kept_module, "package_version", lambda name: "1")


def counted(arguments: dict[str, Any], times: int = 2) -> int:
    """Return how often a plan was computed."""
    calls = []
    for _ in range(times):
        assert kept(benchmark("felm"), arguments, lambda: calls.append(1) or {"calls": 1}) == {"calls": 1}
    return len(calls)


def test_the_same_arguments_are_computed_once(released: None) -> None:
    assert counted({"model": "m"}) == 1
    assert counted({"model": "other"}) == 1


@pytest.mark.parametrize("form", [str, lambda path: [str(path)], lambda path: {"questions": str(path)}])
def test_arguments_that_name_files_are_computed_again(
    released: None, tmp_path: Path, form: Callable[[Path], Any]
) -> None:
    file = tmp_path / "questions.jsonl"
    file.touch()
    assert counted({"task_args": form(file)}) == 2


def test_changed_code_and_variables_are_computed_again(released: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted({"model": "m"}, times=1) == 1
    monkeypatch.setenv("QABENCH_SPACY_MODEL", "another")
    assert counted({"model": "m"}, times=1) == 1
    monkeypatch.setattr(kept_module, "code_version", lambda: "9.9.9+g1234567.dirty")
    assert counted({"model": "m"}) == 2


def test_an_unreadable_entry_is_replaced(released: None) -> None:
    counted({"model": "m"})
    (path,) = (cache_dir() / FOLDER).iterdir()
    for content in (b"\xff", b"[", b"[]", b""):
        path.write_bytes(content)
        assert counted({"model": "m"}) == 1


def test_a_second_dry_run_and_list_need_no_inspect(released: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai")
    dry_run = ["run", "felm", "--config", "sample", "--dry-run", "--model", "m"]
    commands = [dry_run, [*dry_run, "--price-in", "1", "--price-out", "2"], ["run", "felm", "--list-options"]]
    first = [CliRunner().invoke(app, command) for command in commands]
    assert [result.exit_code for result in first] == [0, 0, 0] and "counting the prompts" in first[0].output
    for module in ("estimate", "task_options"):  # importing them fails
        monkeypatch.setitem(sys.modules, f"qabench.runs.{module}", None)
    again = [CliRunner().invoke(app, command) for command in commands]
    assert [result.stdout for result in again] == [result.stdout for result in first]
    assert "counting the prompts" not in again[0].output
