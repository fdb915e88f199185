"""Locks between processes, on files that exist only while they are locked."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, SoftFileLock, Timeout


class ProcessLock:
    """A lock with one holder at a time, in this process or another one.

    A killed process loses its locks. Where the file system cannot lock files (a mounted bucket, a
    folder that is read-only), everybody gets the lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Inspect may end a run in a thread other than the one that started it.
        self._lock: Any = FileLock(path, thread_local=False)

    def try_acquire(self) -> bool:
        """Take the lock, and return whether this was possible. Never waits."""
        try:
            with warnings.catch_warnings(action="ignore"):
                # filelock warns when it falls back to a soft lock.
                self._lock.acquire(timeout=0)
        except Timeout:
            return False
        except (OSError, NotImplementedError):
            return True
        if isinstance(self._lock, SoftFileLock):
            # A soft lock is a file, which a killed process would leave behind. So it is not kept.
            self._lock.release()
        return True

    def release(self) -> None:
        """Give the lock back, and delete its file. Does nothing without the lock."""
        if not self._lock.is_locked:
            return
        with suppress(PermissionError):
            # Windows deletes the file itself when the lock is released.
            self._path.unlink(missing_ok=True)
        self._lock.release()
