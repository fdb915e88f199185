"""Hooks of MkDocs: parts of pages that are written while the site is built.

They follow from the code, from notebooks and from the changelog. A public name without
documentation is a warning, which fails a strict build.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Iterator
from html import unescape
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
REFERENCE = "reference/python/index.html"
LOG = logging.getLogger("mkdocs.hooks")

GENERATED = {
    "<!-- commands -->": lambda: "\n".join(_commands()),
    "<!-- official -->": lambda: "\n".join(_official()),
    "<!-- metrics -->": lambda: "\n".join(_metrics()),
}


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the changelog and the examples as pages."""
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
    """Warn of public names that the reference does not document."""
    page = (Path(config["site_dir"]) / REFERENCE).read_text(encoding="utf-8")
    for name in undocumented(set(re.findall(r'id="(qabench[\w.]*)"', page))):
        LOG.warning("the public name %s is not documented in docs/reference/python.md", name)


def undocumented(anchors: set[str]) -> list[str]:
    """Return the public functions and classes that no anchor of the reference leads to.

    Public names are those in ``__all__`` of the modules ``PUBLIC``.
    """
    # By identity: a class can be documented under the name of another module.
    documented = {id(_object(anchor)) for anchor in anchors}
    names = []
    for package in PUBLIC:
        module = _module(package)
        for name in module.__all__:
            public = getattr(module, name)
            if callable(public) and id(public) not in documented:
                names.append(f"{package}.{name}")
    return names


def _object(path: str) -> Any:
    """Return the object of a dotted path, or None if it does not exist."""
    package, _, name = path.rpartition(".")
    try:
        return getattr(_module(package), name, None) if package else None
    except ImportError:  # the path of a method
        return None


_module = importlib.import_module


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the markers of ``GENERATED`` in a page."""
    for marker, write in GENERATED.items():
        if marker in markdown:
            markdown = markdown.replace(marker, write())
    return markdown


# A block of code in a page, and a line of it whose words stand in columns.
CODE = re.compile(r"(<pre[^>]*>(?:<span></span>)?)<code>(.*?)(</code></pre>)", re.DOTALL)
FULL_LINE = 103  # characters of a line on a laptop. Blocks with longer ones get a smaller font
MAX_LINE = 124  # characters in the smaller font. Longer lines in columns would be cut
COLUMNS = re.compile(r"\S {2,}\S|^ *[-=| ]{8,}$|^\|")
# Code with a comment behind it, which a phone may wrap, or a comment alone.
COMMENTED = re.compile(r"^#|^ *(?:(?! {2}).)+ {2,}#")


def on_page_content(html: str, **_: Any) -> str:
    """Mark the lines of code blocks that stand in columns: the style sheet wraps only the others."""
    return CODE.sub(lambda block: block[1] + _with_columns(block[2]) + block[3], html)


def _with_columns(code: str) -> str:
    lines = code.split("\n")
    longest = 0
    for number, line in enumerate(lines):
        text = unescape(re.sub("<[^>]+>", "", line))
        # The markup of some lines continues in the next one.
        is_whole = line.count("<span") == line.count("</span>")
        if is_whole and COLUMNS.search(text):
            kind = "columns commented" if COMMENTED.search(text) else "columns"
            lines[number] = f'<span class="{kind}">{line}</span>'
            longest = max(longest, len(text))
    start = '<code class="wide">' if longest > FULL_LINE else "<code>"
    return start + "\n".join(lines)


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
            yield from _command(
                command.get_command(context, part), f"{name} {part}", min(level + 1, 4)
            )


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
