"""Follows CONTRIBUTING.md: adds a fifth benchmark and its metric to a copy of the checkout."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
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
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout's code, with the example's folders added and nothing else changed."""
    copy = tmp_path_factory.mktemp("contributing") / "checkout"
    for folder in ("src", "loading_scripts", "metrics", "retrieval"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=IGNORED)
    shutil.copy(ROOT / "setup.py", copy)
    before = {path.relative_to(copy): path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    shutil.copytree(EXAMPLE, copy, dirs_exist_ok=True, ignore=IGNORED)
    assert all((copy / name).read_bytes() == content for name, content in before.items()), "only folders are added"
    return copy


@pytest.fixture(scope="module")
def installed(checkout: Path) -> Path:
    """The copy as setup.py installs it: every package below one folder."""
    setup = runpy.run_path(str(checkout / "setup.py"), run_name="setup_file")
    packages, roots = setup["packages"](), setup["ROOTS"]
    assert {"qabench.benchmarks.rivers", "qabench.loading_scripts.rivers", "qabench.metrics.river_match"} <= set(
        packages
    )
    site = checkout.parent / "site"
    for package, folder in roots.items():
        shutil.copytree(checkout / folder, site / package.replace(".", "/"), dirs_exist_ok=True, ignore=IGNORED)
    return site


def python(site: Path, *arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(site), "COLUMNS": "200", "INSPECT_LOG_LEVEL": "error"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=site.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == fails, done.stderr
    return done


def qabench(site: Path, *arguments: str) -> str:
    return python(site, "-m", "qabench", *arguments).stdout


@pytest.fixture(scope="module")
def predictions(installed: Path) -> Path:
    path = installed.parent / "answers.jsonl"
    path.write_text("".join(json.dumps({"id": id, "answer": text}) + "\n" for id, text in ANSWERS.items()))
    return path


def test_load_and_metric(installed: Path) -> None:
    code = """if True:
        import json, qabench
        rows = qabench.load_dataset("rivers", split="test")
        metric = qabench.load_metric("river_match")
        given = {"predictions": ["THE SEINE", None, "x", "x"], "references": rows["answer"]}
        print(json.dumps([rows[0], metric.compute(**given), metric.compute(**given, ignore_case=False)]))
    """
    row, official, deviating = json.loads(python(installed, "-c", code).stdout)
    assert row["question"] == "Which river flows through Paris?"
    assert (official["match"], official["deviations"]) == (0.25, [])
    assert (deviating["match"], deviating["deviations"]) == (0.0, ["case: kept instead of ignored"])


def test_list_and_stats(installed: Path) -> None:
    assert re.search(r"rivers\W+sample", qabench(installed, "list"))
    assert re.search(r"Europe\W+2", qabench(installed, "stats", "rivers"))


def test_score_and_results(installed: Path, predictions: Path) -> None:
    report = installed.parent / "report.json"
    shown = qabench(installed, "score", "rivers", str(predictions), "--by", "continent", "--output", str(report))
    assert "0.5000" in shown and "South America" in shown
    scored = json.loads(report.read_text(encoding="utf-8"))
    assert (scored["scores"], scored["n"], scored["deviations"]) == ({"match": 0.5}, {"match": 4}, {"match": []})
    entries = qabench(installed, "results", str(report), "--setting", "closed-book")
    assert "n 4 questions" in entries and "UNOFFICIAL" not in entries


def test_run_compare_and_report(installed: Path, predictions: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra run")
    pytest.importorskip("altair", reason="needs the extra report")
    cities = {"Paris": "the Seine", "Cairo": "the Nile", "Vienna": "the Danube"}
    options = ("--model", "table/x", "--log-dir", "logs", "--json")
    ran = python(installed, "-c", SCRIPTED, json.dumps(cities), "run", "rivers", *options)
    found: Any = json.loads(ran.stdout)
    assert (found["scores"], found["n"]) == ({"match": 1.0}, {"match": 4})
    (log,) = (installed.parent / "logs").glob("*.eval")
    compared = qabench(installed, "compare", "rivers", str(log), str(predictions))
    assert "0.5000" in compared
    qabench(installed, "report", str(log), "--output", "page")
    page = "".join(path.read_text(encoding="utf-8") for path in (installed.parent / "page").rglob("*.html"))
    assert "Rivers" in page and "Which river flows through Manaus?" in page


def test_wrong_names_list_the_new_ones(installed: Path, predictions: Path) -> None:
    done = python(installed, "-m", "qabench", "score", "river", str(predictions), fails=True)
    assert done.returncode == 2 and "rivers" in done.stderr
