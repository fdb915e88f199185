"""Follows CONTRIBUTING.md: adds a fifth benchmark and its metric to a copy of the checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # a dozen processes
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = Path(__file__).parent / "example"
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")
ANSWERS = {"r1": "It is the Seine.", "r2": "The Nile", "r3": "I do not know.", "r4": "the Amazon"}
# A provider of Inspect AI that answers from a table, registered as in a user's package.
SCRIPTED = """
import json, re, sys
from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi
ANSWERS = json.loads(sys.argv.pop(1))

@modelapi("table")
class Table(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        city = re.search(r"through (\\w+)", input[-1].text)
        output = ModelOutput.from_content("table", ANSWERS.get(city[1] if city else "", "the Negro"))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

from qabench.cli import main
main()
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with a copy of the checkout to which only the example's folders are added."""
    folder = tmp_path_factory.mktemp("contributing")
    checkout = folder / "checkout"
    for name in ("src", "loading_scripts", "metrics", "retrieval"):
        shutil.copytree(ROOT / name, checkout / name, ignore=IGNORED)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    files = {path.relative_to(EXAMPLE) for path in EXAMPLE.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert not [path for path in files if (checkout / path).exists()], "only files are added"
    shutil.copytree(EXAMPLE, checkout, dirs_exist_ok=True, ignore=IGNORED)
    venv.create(folder / "env", symlinks=True)
    (site,) = folder.glob("env/lib/python*/site-packages")
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "packages.pth").write_text("\n".join(packages))
    executable = folder / "env" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", executable, "install", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*install, checkout], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return executable


def run(python: Path, *arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder of the environment, where only the installed copy can be imported."""
    environment = os.environ | {"COLUMNS": "200", "INSPECT_LOG_LEVEL": "error"}
    done = subprocess.run(
        [python, *arguments], env=environment, cwd=folder_of(python), capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == fails, done.stderr
    return done


def folder_of(python: Path) -> Path:
    return python.parents[2]


def qabench(python: Path, *arguments: str) -> str:
    return run(python, "-m", "qabench", *arguments).stdout


@pytest.fixture(scope="module")
def predictions(python: Path) -> Path:
    path = folder_of(python) / "answers.jsonl"
    path.write_text("".join(json.dumps({"id": id, "answer": text}) + "\n" for id, text in ANSWERS.items()))
    return path


def test_the_example_is_small() -> None:
    files = [path for path in EXAMPLE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(files) <= 8
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 250


def test_load_and_metric(python: Path) -> None:
    code = """if True:
        import json, qabench
        rows = qabench.load_dataset("rivers", split="test")
        metric = qabench.load_metric("river_match")
        pairs = {"predictions": ["THE SEINE", None, "x", "x"], "references": rows["answer"]}
        print(json.dumps([rows[0], metric.compute(**pairs), metric.compute(**pairs, ignore_case=False)]))
    """
    row, official, deviating = json.loads(run(python, "-c", code).stdout)
    assert row["question"] == "Which river flows through Paris?"
    assert (official["match"], official["deviations"]) == (0.25, [])
    assert (deviating["match"], deviating["deviations"]) == (0.0, ["case: kept instead of ignored"])


def test_list_and_stats(python: Path) -> None:
    assert re.search(r"rivers\W+sample", qabench(python, "list"))
    assert re.search(r"test\W+4", qabench(python, "stats", "rivers"))


def test_score_and_results(python: Path, predictions: Path) -> None:
    report = folder_of(python) / "report.json"
    shown = qabench(python, "score", "rivers", str(predictions), "--by", "continent", "--output", str(report))
    assert "0.5000" in shown and "South America" in shown
    scored = json.loads(report.read_text(encoding="utf-8"))
    assert (scored["scores"], scored["n"], scored["deviations"]) == ({"match": 0.5}, {"match": 4}, {"match": []})
    entries = qabench(python, "results", str(report), "--setting", "closed-book")
    assert "n 4 questions" in entries and "UNOFFICIAL" not in entries


def test_run_compare_and_report(python: Path, predictions: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra run")
    pytest.importorskip("jinja2", reason="needs the extra report")
    cities = {"Paris": "the Seine", "Cairo": "the Nile", "Vienna": "the Danube"}
    options = ("--model", "table/x", "--log-dir", "logs", "--json")
    ran = run(python, "-c", SCRIPTED, json.dumps(cities), "run", "rivers", *options)
    scored: Any = json.loads(ran.stdout)
    assert (scored["scores"], scored["n"]) == ({"match": 1.0}, {"match": 4})
    (log,) = (folder_of(python) / "logs").glob("*.eval")
    compared = qabench(python, "compare", "rivers", str(log), str(predictions))
    assert "0.5000" in compared
    qabench(python, "report", str(log), "--output", "page")
    page = "".join(path.read_text(encoding="utf-8") for path in (folder_of(python) / "page").rglob("*.html"))
    assert "Rivers" in page and "Which river flows through Manaus?" in page
