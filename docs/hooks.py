"""MkDocs hooks: what follows from the code, from notebooks and from the changelog is written while the site is built.

A public name without documentation is a warning, which fails a strict build.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File

from qabench.benchmarks import benchmark, benchmark_names
from qabench.cli import app
from qabench.evaluation.signature import Field

sys.path.append(str(Path(__file__).parent))
from notebook_pages import page_of

ROOT = Path(__file__).parents[1]
PUBLIC = ("qabench", "qabench.evaluation", "qabench.retrieval", "qabench.stats", "qabench.text")
RESULTS = re.compile(r"<!-- results of (\w+) -->")
REFERENCE = "reference/python/index.html"
LOG = logging.getLogger("mkdocs.hooks")

GENERATED = {
    "<!-- commands -->": lambda: "\n".join(_commands()),
    "<!-- official -->": lambda: "\n".join(_official()),
    "<!-- metrics -->": lambda: "\n".join(_metrics()),
}


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Adds the changelog and the examples as pages."""
    files.append(
        File.generated(
            config, "changelog.md", content=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        )
    )
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        page, images = page_of(notebook)
        files.append(File.generated(config, f"examples/{notebook.stem}.md", content=page))
        for name, content in images.items():
            files.append(File.generated(config, f"examples/{name}", content=content))
    return files


def on_post_build(config: Any, **_: Any) -> None:
    """Warns of public names that the reference does not document."""
    page = (Path(config["site_dir"]) / REFERENCE).read_text(encoding="utf-8")
    for name in undocumented(set(re.findall(r'id="(qabench[\w.]*)"', page))):
        LOG.warning("the public name %s is not documented in docs/reference/python.md", name)


def undocumented(anchors: set[str]) -> list[str]:
    """The functions and classes in ``__all__`` of the modules ``PUBLIC`` that no anchor of the reference leads to."""
    documented = {id(found) for anchor in anchors if (found := _object(anchor)) is not None}
    names = [
        (f"{package}.{name}", package, name) for package in PUBLIC for name in _module(package).__all__
    ]
    objects = {full: getattr(_module(package), name) for full, package, name in names}
    return [full for full, found in objects.items() if callable(found) and id(found) not in documented]


def _object(path: str) -> Any:
    """The object of a dotted path; None if there is none."""
    package, _, name = path.rpartition(".")
    try:
        return getattr(_module(package), name, None) if package else None
    except ImportError:  # the path of a method
        return None


_module = importlib.import_module


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replaces the markers of ``GENERATED`` in a page."""
    for marker, write in GENERATED.items():
        if marker in markdown:
            markdown = markdown.replace(marker, write())
    return RESULTS.sub(lambda found: _results(found[1]), markdown)


def _results(name: str) -> str:
    """The published results in the card of a dataset: their source files need not be on this machine."""
    card = (ROOT / "loading_scripts" / name / "README.md").read_text(encoding="utf-8")
    return card.partition("<!-- generated: results -->")[2].partition("<!-- end -->")[0].strip()


def _commands() -> Iterator[str]:
    root = typer.main.get_command(app)
    yield from _command(root, "qabench", 2)


def _command(command: Any, name: str, level: int) -> Iterator[str]:
    import click

    context = click.Context(command, info_name=name)
    yield f"{'#' * level} `{name}`\n"
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group) or hasattr(command, "list_commands"):
        for part in command.list_commands(context):
            yield from _command(command.get_command(context, part), f"{name} {part}", min(level + 1, 4))


def _official() -> Iterator[str]:
    for name in benchmark_names():
        for score, declaration in benchmark(name).declarations().items():
            yield f"\n### {benchmark(name).title}: `{score}`\n"
            yield "| field of the signature | official value |\n|---|---|"
            for field_name, field in declaration.items():
                yield f"| `{field_name}` | {_values(field)} |"


def _values(field: Field) -> str:
    if field.official is None:
        return "any"
    if callable(field.official):
        return (field.official.__doc__ or "see the source").strip().split("\n")[0]
    return " or ".join(f"`{value}`" for value in field.official)


def _metrics() -> Iterator[str]:
    yield "| benchmark | score | what it measures | n counts | official |\n|---|---|---|---|---|"
    for name in benchmark_names():
        for spec in benchmark(name).scores:
            official = "yes" if spec.official else "no"
            yield f"| {benchmark(name).title} | `{spec.name}` | {spec.about} | {spec.unit} | {official} |"
