"""``qabench path``: the paths of folders that other programs need."""

from __future__ import annotations

from typing import Annotated

import typer

from qabench.errors import InputError
from qabench.io.terminal import write_line

PACKAGES = {"lm-eval": "qabench.benchmarks"}


def path(
    name: Annotated[str, typer.Argument(metavar="NAME", help="lm-eval: the tasks for lm-evaluation-harness.")],
) -> None:
    """Print the path of a folder for another program: lm_eval --include_path "$(qabench path lm-eval)"."""
    from importlib.resources import files

    if name not in PACKAGES:
        raise InputError(f"unknown folder {name!r}; allowed: {', '.join(PACKAGES)}")
    write_line(files(PACKAGES[name]))
