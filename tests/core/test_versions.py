"""Versions identify the code: the changelog's changes of scores, and the commit of a checkout."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from qabench.evaluation.signature import signature, version
from qabench.io.checkout import commit_of
from qabench.io.environment import code_version

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def test_changes_of_scores_have_a_version_of_their_own() -> None:
    sections = re.split(r"^## ", CHANGELOG.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    names = [section.split()[0] for section in sections]
    assert version() in names
    newer = sections[: names.index(version())]
    assert not [section.split()[0] for section in newer if "**score**" in section], "raise the version"


def test_signatures_have_the_commit_of_a_checkout() -> None:
    assert signature("acc").endswith(f"|qabench:{code_version()}")
    assert re.fullmatch(rf"{re.escape(version())}(\+g[0-9a-f]+(\.dirty)?)?", code_version())


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
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
