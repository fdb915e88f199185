"""Runs every example and writes it as a notebook with its outputs: ``python examples/build.py
[NAME...]``.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
COLOR = re.compile(r"\x1b\[[0-9;]*m")  # Jupyter asks programs for colored output
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.name != Path(__file__).name)


def built(script: Path) -> nbformat.NotebookNode:
    """The example as a notebook, executed in an empty folder. Raises nbclient's CellExecutionError
    if a cell fails.
    """
    notebook = jupytext.read(script)
    environment = os.environ | {
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "HF_EVALUATE_OFFLINE": "1",
        "HF_HUB_OFFLINE": "1",
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "ignore",
        "QABENCH_CHECKOUT": str(FOLDER.parent.resolve()),  # for the example of a recipe
    }
    for name in ("QABENCH_MIRROR", "QABENCH_SPACY_MODEL"):  # a plain installation has these outputs
        environment.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=300, resources=resources, coalesce_streams=True).execute(
            env=environment
        )
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # random ids would change with every build
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = COLOR.sub("", output["text"])
    return notebook


def main() -> None:
    for script in EXAMPLES:
        if script.stem in (sys.argv[1:] or [script.stem]):
            nbformat.write(built(script), script.with_suffix(".ipynb"))
            print(f"{script.stem}: written")


if __name__ == "__main__":
    main()
