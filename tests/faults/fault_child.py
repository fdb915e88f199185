"""Operations of qabench in forked processes: they start at once, and can be killed at any moment."""

from __future__ import annotations

import functools
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

TRACEBACK = 99  # the exit code of a child that raised
LONGEST = 120.0  # seconds; a child that takes longer hangs
# The clients of loopback servers, and nothing else, may use the network.
ENVIRONMENT = {"NO_PROXY": "127.0.0.1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "TQDM_DISABLE": "1"}


class Child:
    """``work`` in a forked process with its own session, whose standard error is kept.

    Args:
        work: returns the exit code.
        folder: for the file with the standard error.
        environment: variables that are set; None deletes one.
    """

    def __init__(self, work: Callable[[], int], folder: Path, **environment: str | None) -> None:
        handle, name = tempfile.mkstemp(dir=folder, prefix="stderr-")
        self._errors = Path(name)
        self._code: int | None = None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = TRACEBACK
            try:
                os.setsid()
                _redirect(handle)
                for variable, value in {**ENVIRONMENT, **environment}.items():
                    os.environ.pop(variable, None)
                    if value is not None:
                        os.environ[variable] = value
                code = work()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(handle)

    @property
    def errors(self) -> str:
        """What it has written on standard error."""
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def kill(self, after: float) -> bool:
        """Kills it after this many seconds. Returns whether it was still running."""
        give_up = time.monotonic() + after
        while (left := give_up - time.monotonic()) > 0:
            if self._poll():
                return False
            time.sleep(min(left, 0.005))
        if self._poll():
            return False
        with suppress(ProcessLookupError):  # it has not called setsid yet
            os.killpg(self.pid, signal.SIGKILL)
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        return self._code == -signal.SIGKILL

    def wait(self) -> int:
        """Its exit code. Raises AssertionError for a traceback, or if it hangs."""
        give_up = time.monotonic() + LONGEST
        while not self._poll():
            if time.monotonic() > give_up:
                self.kill(0)
                raise AssertionError(f"it hangs: {self.errors[-300:]}")
            time.sleep(0.002)
        assert self._code is not None
        if self._code == TRACEBACK or "Traceback" in self.errors:
            raise AssertionError(f"traceback: {self.errors[-300:]}")
        return self._code

    def _poll(self) -> bool:
        if self._code is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None


def command(*arguments: object) -> Callable[[], int]:
    """The ``qabench`` command with these arguments; its result is the exit code."""

    def run() -> int:
        from qabench.cli import main

        sys.argv = ["qabench", *map(str, arguments)]
        try:
            main()
        except SystemExit as error:
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        return 0

    return run


def moment(chance: random.Random, whole: float) -> float:
    """A random moment of an operation that takes about ``whole`` seconds, also shortly after its end."""
    return chance.random() * whole * 1.1


@functools.cache
def seconds_of(name: str, measure: Callable[[], float]) -> float:
    """How long an operation takes undisturbed, measured once per process."""
    return measure()


def timed(make: Callable[[], Child]) -> float:
    """The seconds of an undisturbed child. Raises AssertionError if it fails."""
    begin = time.monotonic()
    child = make()
    if (code := child.wait()) != 0:
        raise AssertionError(f"exit code {code}: {child.errors[-300:]}")
    return time.monotonic() - begin


def _redirect(errors: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number, target in ((0, null), (1, null), (2, errors)):
        os.dup2(target, number)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
