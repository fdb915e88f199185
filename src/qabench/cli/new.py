"""``qabench new``: a small, complete benchmark outside of this package, to be changed."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from importlib import resources
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from qabench.cli.options import output_folder
from qabench.cli.output import say
from qabench.errors import InputError
from qabench.io.files import write_text
from qabench.loading_scripts import benchmark_names

EXAMPLE = "rivers"
NAME = re.compile("[a-z][a-z0-9_]*")


def new(
    name: Annotated[
        str, Argument(metavar="NAME", help="The name of the benchmark, such as strategyqa.")
    ],
    output: Annotated[
        Path,
        Option(
            file_okay=False,
            callback=output_folder,
            help="Write DIR/NAME, DIR/pyproject.toml and a test.",
        ),
    ] = Path(),
) -> None:
    """Write a small benchmark with four questions, a score, a prompt, a card and a test.

    Then change its files. Every command takes it with QABENCH_PATH=DIR, or after `pip install DIR`.
    Exit code: 0 it was written; 2 the name is taken or not allowed, or files exist.
    """
    if not NAME.fullmatch(name):
        raise InputError(
            f"the name is {name!r}; allowed: lowercase letters, digits and _, such as strategyqa"
        )
    if keyword.iskeyword(name):
        raise InputError(f"{name} is a Python keyword; choose another name")
    if name in sys.stdlib_module_names or name in benchmark_names() or _is_installed(name):
        raise InputError(
            f"{name} is the name of a benchmark, or of an importable module, which the new package would hide; "
            "choose another name"
        )
    template = Path(str(resources.files("qabench.cli") / "template"))
    texts = {}
    for path in sorted(template.rglob("*")):
        if path.is_file():
            # The template's code files end with .txt, so that no tool treats them as this package's
            # code.
            target = str(path.relative_to(template)).removesuffix(".txt")
            texts[output / _renamed(target, name)] = _renamed(path.read_text("utf-8"), name)
    # All files are checked before the first is written.
    for path in texts:
        if path.exists():
            raise InputError(f"{path} exists; choose another --output")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
        say(path)
    say(f"Try it: QABENCH_PATH={output} qabench stats {name}")


def _is_installed(name: str) -> bool:
    """Tell whether Python finds a module of this name, which the benchmark's package would hide.

    A folder without ``__init__.py`` in the working directory is found as well, but does not count.
    """
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def _renamed(text: str, name: str) -> str:
    """Return a text of the example with its name replaced."""
    title = "".join(word.capitalize() for word in name.split("_"))
    return text.replace(EXAMPLE, name).replace(EXAMPLE.capitalize(), title)
