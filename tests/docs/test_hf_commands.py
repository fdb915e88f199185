"""The commands of `hf` and `inspect` on the pages are accepted by the installed programs' parsers."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?:text|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(program: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of the program with its page. Continued lines are one command."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in BLOCK.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True) if line.startswith(f"{program} ") else []
                if words:
                    yield page.name, words[1:]


def parse(command: click.Command, words: list[str]) -> None:
    """Parse a command line without running it. Raises click.UsageError."""
    context = command.make_context(command.name or "", list(words), resilient_parsing=False)
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, found.make_context(name, rest, parent=context)


def test_hf() -> None:
    from huggingface_hub.cli.hf import app as program

    parsed = 0
    for page, words in commands("hf"):
        try:
            parse(program, words)
        except click.UsageError as error:
            pytest.fail(f"{page}: hf {shlex.join(words)}: {error.format_message()}")
        parsed += 1
    assert parsed >= 6
    with pytest.raises(click.UsageError):
        parse(program, ["jobs", "hardware", "--no-such-option"])


def test_inspect() -> None:
    from inspect_ai._cli.main import inspect

    parsed = 0
    for page, words in commands("inspect"):
        try:
            parse(inspect, words)
        except click.UsageError as error:
            pytest.fail(f"{page}: inspect {shlex.join(words)}: {error.format_message()}")
        parsed += 1
    assert parsed >= 1
