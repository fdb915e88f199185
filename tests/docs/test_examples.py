"""The examples: they run offline, and the committed notebooks have the outputs of their scripts."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from generate import VERSION, steady

nbformat = pytest.importorskip("nbformat", reason="needs the extra docs")
pytest.importorskip("jupytext", reason="needs the extra docs")
EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.name != "build.py")


def shown(notebook: Any) -> list[list[str]]:
    """The text of each cell's outputs, without versions and times; "image" for a plot."""
    return [[_text(output) for output in cell.get("outputs", ())] for cell in notebook.cells]


def _text(output: Any) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return "image"
    return VERSION.sub("", steady("".join(output.get("text") or data.get("text/plain", "")), Path("/nowhere")))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_notebook_has_the_outputs_of_the_script(script: Path) -> None:
    if script.stem == "fine_tuning":
        pytest.importorskip("trl", reason="needs recipes/expertqa_lfqa/requirements.txt")
    made = runpy.run_path(str(EXAMPLES / "build.py"))["built"](script)
    committed = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    sources = [[cell.source.strip() for cell in notebook.cells] for notebook in (made, committed)]
    assert sources[0] == sources[1], "run examples/build.py"
    assert shown(made) == shown(committed)


def test_every_example_is_listed() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for script in SCRIPTS:
        assert f"({script.stem}.ipynb)" in page and script.with_suffix(".ipynb").is_file()
