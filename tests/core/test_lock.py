"""The versions that CI installs: complete, within the package's bounds, and used by CONTRIBUTING and CI alike."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11.7", "3.12.1", "3.13.0", "3.14.0")
NOT_INSTALLED = {"all", "lucene"}  # extras
OTHER_LOCK = "every-eval-ever"  # has versions of its own
LIGHTEVAL_LOCK = ".ci/lighteval.txt"


def lines(name: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def needed() -> Iterator[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    yield from map(Requirement, project["dependencies"])
    for name in extras.keys() - NOT_INSTALLED:
        yield from map(Requirement, extras[name])
    files = ["recipes/expertqa_lfqa/requirements.txt", ".ci/requirements.in", ".ci/requirements-no-deps.in"]
    for line in (line for name in files for line in lines(name)):
        yield Requirement(line.partition(" #")[0])


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_allowed_version_of_each_requirement(python: str) -> None:
    marks = {"python_full_version": python, "python_version": python.rpartition(".")[0], "sys_platform": "linux"}
    pins: dict[str, str] = {}
    for pin in map(Requirement, lines(".ci/constraints.txt")):
        if pin.marker is None or pin.marker.evaluate(marks):
            name = canonicalize_name(pin.name)
            assert name not in pins, f"{name} has two versions for Python {python}"
            pins[name] = str(pin.specifier).removeprefix("==")
    for requirement in needed():
        if requirement.name != "qabench" and (requirement.marker is None or requirement.marker.evaluate(marks)):
            version = pins.get(canonicalize_name(requirement.name))
            assert version and version in requirement.specifier, f"{requirement}: locked {version}; run .ci/lock"


def test_ci_installs_locked_versions() -> None:
    text = (ROOT / ".ci/run").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [line.partition(" #")[0] for line in text.splitlines() if "pip install " in line]
    assert len(commands) == 8
    locked = {canonicalize_name(Requirement(line).name) for line in lines(".ci/constraints.txt")}
    for command in commands:
        if "-c .ci/" not in command:
            assert command.split("--quiet ")[1] in (".", '".[test]"'), "README's commands only have no constraints"
        elif OTHER_LOCK not in command and LIGHTEVAL_LOCK not in command:
            words = command.partition("constraints.txt")[2].replace('"', "").split()
            names = {word.partition("[")[0] for word in words if word[0].isalpha() and "/" not in word}
            assert names and not names - locked, command


def test_ci_runs_contributings_commands() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Set up\n\n```text\n")[2]
    commands = [line.partition("#")[0].strip() for line in section.partition("```")[0].splitlines()]
    assert commands[0] == 'pip install -c .ci/constraints.txt -e ".[dev]"' and len(commands) == 6
    assert not re.search("[&|;]", "".join(commands)), "bash -e does not notice that the first part of a line failed"


def test_locks_name_no_server_or_folder() -> None:
    for name in (".ci/constraints.txt", ".ci/every-eval-ever.txt", ".ci/lighteval.txt"):
        assert [line for line in lines(name) if not re.match(r"[\w.-]+==[\w.+]+( ; .*)?$", line)] == []
