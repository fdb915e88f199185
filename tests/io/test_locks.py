"""Locks between processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from qabench.io.locks import ProcessLock

HOLDER = """
import sys, time
from pathlib import Path
from qabench.io.locks import ProcessLock
lock = ProcessLock(Path(sys.argv[1]))
assert lock.try_acquire()
print("taken", flush=True)
time.sleep(600)
"""


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = ProcessLock(path), ProcessLock(path)
    assert first.try_acquire() and not second.try_acquire()
    second.release()
    assert not second.try_acquire()
    first.release()
    assert not path.exists()
    assert second.try_acquire() and not first.try_acquire()


def test_a_killed_process_loses_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE)
    assert holder.stdout and holder.stdout.readline() == b"taken\n"
    lock = ProcessLock(path)
    assert not lock.try_acquire()
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    assert lock.try_acquire()


@pytest.mark.parametrize("error", [OSError("read-only"), NotImplementedError("no locks here")])
def test_without_locks_everybody_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(FileLock, "acquire", refuse)
    for _ in range(2):
        lock = ProcessLock(tmp_path / "lock")
        assert lock.try_acquire()
        lock.release()
