"""The documentation site builds strictly, its code runs, and each of twenty questions is answered near the start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from code_blocks import BLOCK, run_blocks, scripted_model

import qabench

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]

# Question -> the page that the start page must link to, and words that answer it there.
QUESTIONS = {
    "How do I install it?": ("getting-started.md", "pip install"),
    "How do I load FanOutQA's dev set?": ("benchmarks/fanoutqa.md", "`dev`"),
    "What is odd about the ExpertQA data?": ("benchmarks/expertqa.md", "Oddities"),
    "What is the positive class of FELM's F1?": ("benchmarks/felm.md", "positive class is the *error*"),
    "Why can some fastbook questions never score?": ("benchmarks/fastbook.md", "no context"),
    "What must a file of answers look like?": ("guides/score.md", '{"id", "answer"}'),
    "How do I get scores as a LaTeX table?": ("guides/score.md", "latex"),
    "What does judging cost?": ("guides/judge.md", "--dry-run"),
    "Which key does the judge use?": ("guides/judge.md", "FANOUTQA_OPENAI_API_KEY"),
    "How do I run a model of the Hub?": ("guides/run.md", "hf-inference-providers"),
    "How do I continue a run that was killed?": ("guides/run.md", "--resume"),
    "How do I use it without internet?": ("guides/offline.md", "QABENCH_MIRROR"),
    "Which test says whether two systems differ?": ("guides/compare.md", "paired randomization"),
    "How do I evaluate my own retriever?": ("guides/retrieve.md", "your own retriever"),
    "How do I publish a result?": ("guides/publish.md", "--push"),
    "How do I serve a model on several GPUs?": ("guides/scale.md", "tensor-parallel"),
    "How do I add a benchmark?": ("guides/add-a-benchmark.md", "loading_scripts/NAME"),
    "When is a score official?": ("reference/official.md", "signature"),
    "What does exit code 2 mean?": ("reference/exit-codes.md", "Wrong usage"),
    "Why do my numbers differ from the paper?": ("faq.md", "differs from the paper"),
}


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(DOCS)))
def test_code_of_pages(page: Path, tmp_path: Path) -> None:
    with scripted_model() as url:
        run_blocks(page.read_text(encoding="utf-8"), tmp_path, MODEL_URL=url)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_two_clicks_away(question: str) -> None:
    page, words = QUESTIONS[question]
    start = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)#]+)\)", start)) | set(re.findall(r": (\S+\.md)", _navigation()))
    assert page in linked
    assert words in (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    if Path(qabench.__file__).is_relative_to(ROOT):
        pytest.skip("needs a plain installation: an editable one hides packages from the reference's reader")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    assert "qabench score" in page


def _navigation() -> str:
    return (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
