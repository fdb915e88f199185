"""README and cards: their code runs unchanged, and their links exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from code_blocks import BLOCK, run_blocks, scripted_model

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
CARDS = sorted([*ROOT.glob("loading_scripts/*/README.md"), *ROOT.glob("metrics/*/README.md")])


def test_readme(tmp_path: Path) -> None:
    with scripted_model() as url:
        out = "".join(run_blocks(README.read_text(encoding="utf-8"), tmp_path, MODEL_URL=url))
    for printed in ("acc.loose", "fanout_acc|", "lemmatizer"):
        assert printed in out
    assert (tmp_path / "report" / "index.html").is_file()


def test_readme_begins_with_the_set_up_commands() -> None:
    blocks = [code for _, code in BLOCK.findall(README.read_text(encoding="utf-8"))]
    assert blocks[0] == "pip install . && qabench quickstart\n"
    assert blocks[1] == 'pip install ".[test]" && pytest\n'


def test_readme_fits_on_three_screens() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_speeds_are_those_of_the_results() -> None:
    results = (ROOT / "performance/RESULTS.md").read_text(encoding="utf-8").splitlines()
    _, _, speed = README.read_text(encoding="utf-8").partition("## Speed")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in speed.splitlines() if line.startswith("|")
    ]
    compared = [row for row in rows if len(row) == 5 and row[3].endswith("x")]
    assert len(compared) > 2
    for what, official, ours, ratio, _ in compared:
        quoted = (f"| {ours} (", f"| {official} ", f"| {ratio} |")
        assert any(all(part in line for part in quoted) for line in results), what
    searches = [line for line in speed.splitlines() if line.startswith("| one query")]
    assert len(searches) > 4 and set(searches) <= set(results)


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *CARDS], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
