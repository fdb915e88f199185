"""Files and folders that the user may not read or write: one line says which, and nothing else
stops.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import qabench
from qabench.cli import main
from qabench.loading_scripts import FOLDER

NOBODY = 65534
ANSWERS = next((FOLDER / "fanoutqa/sample/generations").glob("*.jsonl"))
OPTIONS = ["--config", "sample", "--lemmatizer", "simplemma", "--scores", "acc"]


def _is_closed() -> bool:
    """Return whether other users cannot enter a folder of the installation, so that they cannot run
    its commands.
    """
    folders = Path(qabench.__file__).resolve().parents
    return not all(folder.stat().st_mode & stat.S_IXOTH for folder in folders)


pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX"),
    pytest.mark.skipif(_is_closed(), reason="other users cannot run this installation"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter, which pytest's are not."""
    path = Path(tempfile.mkdtemp(prefix="qabench-permissions-"))
    path.chmod(0o755)
    yield path
    for each in path.rglob("*"):
        each.chmod(0o700)
    shutil.rmtree(path)


@pytest.fixture
def run(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[object, str]]:
    """Run a command, as another user if this one is root, who may read and write everything."""
    home = folder / "home"
    home.mkdir()
    shutil.copy(ANSWERS, home / "answers.jsonl")
    for path in (home, home / "answers.jsonl"):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    monkeypatch.chdir(home)
    # What the commands import is imported before: the other user may not be able to read Python's
    # own files.
    monkeypatch.setenv("QABENCH_CACHE", str(folder / "warm"))
    for command in (
        ["score", "fanoutqa", "answers.jsonl", *OPTIONS],
        ["score", "fanoutqa", "no.jsonl"],
        ["env"],
        ["list"],
        ["cache", "clear"],
    ):
        monkeypatch.setattr(sys, "argv", ["qabench", *command])
        with pytest.raises(SystemExit):
            main()
    capsys.readouterr()
    monkeypatch.setenv("QABENCH_CACHE", str(home / "cache"))

    def run(*arguments: object) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["qabench", *map(str, arguments)])
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(NOBODY)
        try:
            with pytest.raises(SystemExit) as stopped:
                main()
        finally:
            if is_root:
                os.seteuid(0)
        error = capsys.readouterr().err
        assert "Traceback" not in error
        return stopped.value.code, error

    return run


def test_a_file_of_the_user(run: Callable[..., tuple[object, str]], folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir()
    for path in (closed / "a.jsonl", folder / "b.jsonl"):
        shutil.copy(ANSWERS, path)
    closed.chmod(0)
    (folder / "b.jsonl").chmod(0)
    code, error = run("score", "fanoutqa", folder / "b.jsonl", *OPTIONS)
    assert code == 2 and error == f"qabench: cannot read {folder}/b.jsonl: Permission denied\n"
    code, error = run("score", "fanoutqa", closed / "a.jsonl", *OPTIONS)
    assert code and error.count("\n") == 1 and f"{closed}/a.jsonl" in error and "HF_HOME" not in error
    code, error = run("score", "fanoutqa", "answers.jsonl", *OPTIONS, "-o", closed / "out.json")
    assert code and "closed/out.json" in error and "HF_HOME" not in error
    closed.chmod(0o700)
    assert os.listdir(closed) == ["a.jsonl"]


def test_a_cache(run: Callable[..., tuple[object, str]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cache").mkdir(mode=0)
    monkeypatch.setenv("QABENCH_CACHE", str(folder / "cache"))
    code, error = run("score", "fanoutqa", "answers.jsonl", *OPTIONS)
    assert code == 0 and "continuing without it" in error
    code, error = run("cache", "clear")
    # From Python 3.13 on, a file in a closed folder is tried to be deleted, and before it is not
    # seen.
    advice = ("to a folder that you can write to", "cannot be deleted: [Errno 13] Permission denied")
    assert code == 1 and f"{folder}/cache" in error and any(text in error for text in advice)


def test_a_mirror_and_benchmarks_from_outside(
    run: Callable[..., tuple[object, str]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = folder / "own/closed"
    unreadable = folder / "own/unreadable/__init__.py"
    closed.mkdir(parents=True)
    unreadable.parent.mkdir()
    unreadable.touch()
    closed.chmod(0)
    unreadable.chmod(0)
    for value in (str(folder / "own"), str(closed)):
        monkeypatch.setenv("QABENCH_PATH", value)
        monkeypatch.setenv("QABENCH_MIRROR", str(closed))
        assert run("score", "fanoutqa", "answers.jsonl", *OPTIONS)[0] == 0
        assert run("env")[0] == 0
        assert run("list")[0] == 0
    monkeypatch.setenv("QABENCH_PATH", str(folder / "own"))
    code, error = run("score", "unreadable", "answers.jsonl")
    assert code == 2 and error.count("\n") == 1 and "the benchmark unreadable cannot be imported" in error
