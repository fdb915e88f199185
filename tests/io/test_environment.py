"""The table of environment variables is complete, and keys are never shown."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import qabench
from qabench.benchmarks import Need, benchmark, benchmark_names
from qabench.cli import app
from qabench.io.environment import HIDDEN, environment

ROOT = Path(__file__).parents[2]
NAMES = set(
    re.findall(r"^\| `(\w+)` ", (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8"), re.MULTILINE)
)
# Options of other libraries that our code sets for child processes, but does not read.
SET_FOR_OTHERS = {"HF_DATASETS_DISABLE_PROGRESS_BARS", "HF_DATASETS_CACHE", "HF_MODULES_CACHE"}


def test_every_variable_in_the_code_is_documented() -> None:
    found = set()
    for folder in ("src", "metrics", "retrieval", "loading_scripts"):
        for path in (ROOT / folder).rglob("*.py"):
            found |= set(re.findall(r"[\"'`]((?:QABENCH|FANOUTQA|HF)_[A-Z_]+)\b", path.read_text(encoding="utf-8")))
    assert len(found) > 10 and found - SET_FOR_OTHERS <= NAMES


def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    found = environment()
    assert found["variables"]["FANOUTQA_OPENAI_API_KEY"] == HIDDEN
    assert found["variables"]["QABENCH_OFFLINE"] == "1" and found["qabench"] == qabench.__version__


def test_what_is_official_here(monkeypatch: pytest.MonkeyPatch) -> None:
    need = Need("x", "do this", packages=("json", "no_such_package"), variables=("QABENCH_API_KEY",))
    monkeypatch.delenv("QABENCH_API_KEY", raising=False)
    assert need.missing("felm") == ["no_such_package", "QABENCH_API_KEY"]
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)
    official = json.loads(CliRunner().invoke(app, ["env", "--json"]).stdout)["official"]
    needs = {(need["benchmark"], need["what"]): need for need in official}
    assert needs["felm", "F1 and balanced accuracy of predictions"]["missing"] == []
    judge = needs["fanoutqa", "LLM judge"]
    assert "FANOUTQA_OPENAI_API_KEY" in judge["missing"] and judge["fix"].startswith("pip install")
    shown = CliRunner().invoke(app, ["env"], env={"COLUMNS": "200"}).stdout
    assert re.search(r"felm\n.*\nF1 and balanced accuracy .* +yes", shown)
    assert re.search(r"LLM judge +no: ", shown)


@pytest.mark.parametrize("name", benchmark_names())
def test_every_benchmark_says_what_it_needs(name: str) -> None:
    assert benchmark(name).needs
    for need in benchmark(name).needs:
        assert bool(need.fix) == bool(need.packages or need.files or need.variables)
        need.missing(name)  # every file is a source file
