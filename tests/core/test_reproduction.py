"""Recomputed published numbers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qabench.benchmarks import benchmark, benchmark_names
from qabench.benchmarks.reproduction import Check
from qabench.cli import app
from qabench.loading_scripts.felm import stats


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
    found = benchmark(name).reproduce()
    assert [check for check in found.checks if check.unexplained] == [] and len(found.checks) >= 3
    compared(f"{len(found.checks)} published numbers, {sum(not check.agrees for check in found.checks)} explained")


def test_published_methods_without_their_model_are_listed(mirror: Path) -> None:
    pytest.importorskip("llama_index.core", reason="needs llama-index-core")
    result = CliRunner().invoke(app, ["reproduce", "fastbook", "--format", "json"])
    assert result.exit_code == 0
    checks = {check["number"]: check for check in json.loads(result.stdout)["checks"] if check["kind"] == "score"}
    assert len(checks) == 8
    for model in ("BAAI/bge-small-en-v1.5", "colbert-ir/colbertv2.0", "answerdotai/answerai-colbert-small-v1"):
        (check,) = [check for name, check in checks.items() if f"({model}): recall@10" in name]
        assert check["here"] is None
        assert check["explanation"].startswith(f"not computed: needs the model {model}")


def test_a_new_difference_is_not_explained(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(stats.PUBLISHED, "wk", (531, 385, 147))
    result = CliRunner().invoke(app, ["reproduce", "felm"])
    assert result.exit_code == 1 and "unexplained differences: 1" in result.stdout


def test_unavailable_files_are_named(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    result = CliRunner().invoke(app, ["reproduce", "expertqa"])
    assert result.exit_code == 0 and "qabench fetch expertqa" in result.stdout
    assert "0 published scores" in result.stdout
