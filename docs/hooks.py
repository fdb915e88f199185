"""MkDocs hooks: the reference pages that follow from the code are written while the site is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from qabench.benchmarks import benchmark, benchmark_names, load
from qabench.cli import app
from qabench.environment import ENVIRONMENT
from qabench.official import Field

GENERATED = {
    "<!-- commands -->": lambda: "\n".join(_commands()),
    "<!-- environment -->": lambda: "\n".join(_environment()),
    "<!-- official -->": lambda: "\n".join(_official()),
    "<!-- metrics -->": lambda: "\n".join(_metrics()),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replaces the markers of ``GENERATED`` in a page."""
    for marker, write in GENERATED.items():
        if marker in markdown:
            markdown = markdown.replace(marker, write())
    return markdown


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


def _environment() -> Iterator[str]:
    yield "| variable | meaning | if not set |\n|---|---|---|"
    for variable in ENVIRONMENT:
        yield f"| `{variable.name}` | {variable.about} | {variable.default} |"


def _official() -> Iterator[str]:
    for name in benchmark_names():
        for score, declaration in load(benchmark(name).declarations).items():
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
        for metric in benchmark(name).metrics:
            official = "yes" if metric.official else "no"
            yield f"| {benchmark(name).title} | `{metric.name}` | {metric.about} | {metric.unit} | {official} |"
