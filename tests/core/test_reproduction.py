"""Recomputed published numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import qabench
from qabench.benchmarks import benchmark_names
from qabench.benchmarks.expertqa.reproduce import autoais_table
from qabench.cli import app
from qabench.loading_scripts.felm import stats
from qabench.reproduction import Check, reproduce


@pytest.mark.parametrize(
    ("published", "ours", "agrees"),
    [(0.858333, 0.8583333, True), (0.858333, 0.85834, False), (2.6, 2.6, True), (191, 192, False), (None, 1, True)],
)
def test_numbers_agree_at_the_published_digits(published: float | None, ours: float, agrees: bool) -> None:
    assert Check("x", published, ours).agrees is agrees
    assert Check("x", published, ours).unexplained is not agrees
    assert not Check("x", published, ours, "known").unexplained


@pytest.mark.parametrize("name", benchmark_names())
def test_real_numbers_are_reproduced(name: str, mirror: Path, compared: Callable[[str], None]) -> None:
    found = reproduce(name)
    assert [check for check in found.checks if check.unexplained] == []
    assert len(found.checks) >= 3
    compared(f"{len(found.checks)} published numbers, {sum(not check.agrees for check in found.checks)} explained")


def test_full_text_search_is_reproduced(mirror: Path) -> None:
    pytest.importorskip("llama_index.core", reason="needs llama-index-core")
    checks = {check.what: check for check in reproduce("fastbook").checks}
    assert checks["full-text search (SQLite FTS5): mrr@10"].ours == pytest.approx(0.50546, abs=5e-6)
    assert checks["full-text search (SQLite FTS5): recall@10"].agrees
    assert checks["chunks of 500 tokens by llama-index"].ours == 271


def test_a_new_difference_is_not_explained(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(stats.PUBLISHED, "wk", (531, 385, 147))
    result = CliRunner().invoke(app, ["reproduce", "felm"])
    assert result.exit_code == 1
    assert "unexplained differences: 1" in result.stdout


def test_unavailable_files_are_named(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    result = CliRunner().invoke(app, ["reproduce", "expertqa"])
    assert result.exit_code == 0
    assert "qabench fetch expertqa" in result.stdout
    assert "0 published scores" in result.stdout


def test_autoais_of_annotated_rows() -> None:
    rows = list(qabench.load_dataset("expertqa", "sample", split="train"))
    table = autoais_table("sample", rows)
    (expected,) = [qabench.load_metric("expertqa_autoais").compute(references=rows, predictions=rows)]
    assert table.rows[0][:3] == ["all", round(expected["macro"], 4), round(expected["micro"], 4)]
    assert len(table.rows) > 2
