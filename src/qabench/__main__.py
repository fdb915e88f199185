"""The process of the command ``qabench``, also ``python -m qabench``."""

from __future__ import annotations

import atexit
import os
import sys


def run_process() -> None:
    """Run a command, and end the process without freeing its objects.

    Python frees every object before a process ends. After a command on 100,000 answers that takes a
    fifth of the command's time, and the system frees the memory of a process anyway.
    """
    ending = _Ending()
    # Functions that are registered later run earlier. Hence this comes before all imports.
    atexit.register(ending.end_now)
    from qabench.cli import main

    try:
        main()
    except SystemExit as exit:
        ending.status = exit.code or 0
        raise
    ending.status = 0


class _Ending:
    """What to do when everything is done that Python does before it frees objects."""

    def __init__(self) -> None:
        self.status: object = None
        """The exit status, or None after an exception, which Python prints."""

    def end_now(self) -> None:
        """End the process if its exit status is known and all output is written."""
        if not isinstance(self.status, int):
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            # The disk is full, or the reader has exited. Python says so, with a status of its own.
            return
        os._exit(self.status)


if __name__ == "__main__":
    run_process()
