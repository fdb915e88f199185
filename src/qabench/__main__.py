"""The process of ``qabench`` and ``python -m qabench``: how it handles SIGTERM, and how it ends."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
from typing import TextIO

# The exit statuses that shells report after SIGINT (2) and SIGTERM (15): 128 plus the signal's
# number.
INTERRUPTED = 130
TERMINATED = 143


def run_process() -> None:
    """Run a command, and end the process without freeing its objects.

    Python frees every object before a process ends. For a command on 100,000 answers, this takes a
    fifth of the command's time, although the system frees the memory anyway.

    SIGTERM is handled like Ctrl-C: replies that were paid for are kept, and the command says how to
    continue.
    """
    process = _Process()
    # Functions that are registered later run earlier. Hence this comes before all imports.
    atexit.register(process.end_now)
    process.handle_termination()
    sys.stdout, sys.stderr = _buffered(sys.stdout), _buffered(sys.stderr)
    status: object = 0
    try:
        from qabench.cli import main

        main()
    except SystemExit as exit:
        status = exit.code or 0
    except KeyboardInterrupt:
        # Modules were being imported. After that, Typer turns Ctrl-C into an exit status.
        status = INTERRUPTED
    if process.is_terminated and status == INTERRUPTED:
        status = TERMINATED
    process.status = status
    sys.exit(status)  # type: ignore[arg-type]


def _buffered(stream: TextIO) -> TextIO:
    """Return a standard stream that raises an error if it cannot write a whole text.

    With PYTHONUNBUFFERED or -u, Python writes only a part of a long text if the disk becomes full or
    the reader exits, and raises no error. A buffer writes the rest, or raises the error.
    """
    # A closed standard stream is None.
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(stream.buffer, io.RawIOBase):
        return stream
    buffer = io.BufferedWriter(stream.buffer)
    return io.TextIOWrapper(
        buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True
    )


class _Process:
    """This process, and how it ends."""

    def __init__(self) -> None:
        self.is_terminated = False
        self.status: object = None
        """The exit status, or None after an exception, which Python prints."""

    def handle_termination(self) -> None:
        """Handle SIGTERM, unless the program that started this process has decided otherwise."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        signal.signal(signal.SIGTERM, self.terminate)
        if hasattr(os, "register_at_fork"):
            # Pools end their forked processes with SIGTERM, so forked processes keep its default
            # effect. Python loses signals that arrive while it forks, so SIGTERM is blocked until
            # the fork is complete.
            os.register_at_fork(
                before=_block_sigterm,
                after_in_parent=_unblock_sigterm,
                after_in_child=_restore_sigterm,
            )

    def terminate(self, *_: object) -> None:
        """Record that SIGTERM arrived, and raise KeyboardInterrupt."""
        self.is_terminated = True
        raise KeyboardInterrupt

    def end_now(self) -> None:
        """End the process if its exit status is known and all output is written.

        Python calls this function after the end of all threads and after all other functions that
        were registered with ``atexit``, and would then free the objects.
        """
        if not isinstance(self.status, int):
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            # The disk is full, or the reader has exited. Python then prints the error and exits
            # with another status.
            return
        os._exit(self.status)


def _block_sigterm() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _unblock_sigterm() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _restore_sigterm() -> None:
    """Let SIGTERM end this forked process, as it does by default."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _unblock_sigterm()


if __name__ == "__main__":
    run_process()
