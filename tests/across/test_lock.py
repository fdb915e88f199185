"""Versions: those that CI installs, and what identifies the code in scores."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from qabench.evaluation.signature import signature, version
from qabench.io.environment import code_version, commit_of

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11.7", "3.12.1", "3.13.0", "3.14.0")
NOT_INSTALLED = {"all", "lucene"}  # extras
OTHER_LOCK = "every-eval-ever"  # has versions of its own


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
    assert len(commands) == 7
    locked = {canonicalize_name(Requirement(line).name) for line in lines(".ci/constraints.txt")}
    for command in commands:
        if "-c .ci/" not in command:
            assert command.split("--quiet ")[1] in (".", '".[test]"'), "README's commands only have no constraints"
        elif OTHER_LOCK not in command:
            words = command.partition("constraints.txt")[2].replace('"', "").split()
            names = {word.partition("[")[0] for word in words if word[0].isalpha() and "/" not in word}
            assert names and not names - locked, command


def test_ci_runs_contributings_commands() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Set up\n\n```text\n")[2]
    commands = [line.partition("#")[0].strip() for line in section.partition("```")[0].splitlines()]
    assert commands[0] == 'pip install -c .ci/constraints.txt -e ".[dev]"' and len(commands) == 6
    assert not re.search("[&|;]", "".join(commands)), "bash -e does not notice that the first part of a line failed"


def test_locks_name_no_server_or_folder() -> None:
    for name in (".ci/constraints.txt", ".ci/every-eval-ever.txt"):
        assert [line for line in lines(name) if not re.match(r"[\w.-]+==[\w.+]+( ; .*)?$", line)] == []


def test_changes_of_scores_have_a_version_of_their_own() -> None:
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    names = [section.split()[0] for section in sections]
    assert version() in names
    newer = sections[: names.index(version())]
    assert not [section.split()[0] for section in newer if "**score**" in section], "raise the version"


def test_signatures_have_the_commit_of_a_checkout() -> None:
    assert signature("acc").endswith(f"|qabench:{code_version()}")
    assert re.fullmatch(rf"{re.escape(version())}(\+g[0-9a-f]+(\.dirty)?)?", code_version())


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_builds_need_no_package_for_the_commit() -> None:
    code = "import sys; sys.path.insert(0, 'src'); from qabench.io.environment import commit_of"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=ROOT, check=True)


def test_the_commit_of_a_checkout(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert commit_of(tmp_path, "1.0") is None
    git("init")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "one")
    commit = "g" + git("rev-parse", "HEAD")
    assert commit.startswith(commit_of(tmp_path, "1.0") or "none")
    git("tag", "v1.0")
    assert commit_of(tmp_path, "1.0") is None, "the released version"
    assert commit.startswith(commit_of(tmp_path, "1.1") or "none")
    (tmp_path / "file").write_text("2")
    assert (commit_of(tmp_path, "1.0") or "").endswith(".dirty")
