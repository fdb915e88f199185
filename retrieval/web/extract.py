"""Extract the main text of an HTML page with trafilatura, in a worker process with a time limit."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import subprocess
import sys
import threading
from functools import cache
from importlib import metadata
from typing import Any

from qabench.errors import MissingExtra
from qabench.io.http_error import HttpError
from qabench.io.limits import decoded

EXTRA = "pip install 'qabench[web]'"
# The time limit for one page: the parser needs minutes for a tag with 60,000 attributes.
SECONDS = 30.0


class Extractor:
    """One worker process that extracts the text of pages, for several threads.

    The worker ends with this process, or if a page takes too long. The next page starts a new one.

    Attributes:
        name: the extractor and its version, for signatures.
    """

    def __init__(self) -> None:
        _trafilatura()
        self.name = f"trafilatura-{metadata.version('trafilatura')}"
        self._worker: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def text(self, html: bytes, charset: str | None = None) -> str:
        """Return the ``main_text`` of a page.

        Raises:
            HttpError: the page takes longer than ``SECONDS``, or crashes the worker process.
        """
        with self._lock:
            self._worker = self._worker or _start_worker()
            assert self._worker.stdin is not None and self._worker.stdout is not None
            try:
                # Latin-1 has one character per byte, so JSON can carry any page.
                self._worker.stdin.write(json.dumps([html.decode("latin-1"), charset]) + "\n")
                self._worker.stdin.flush()
                return str(json.loads(self._worker.stdout.readline()))
            except (OSError, ValueError):
                self._end()
                # If the worker ends, writing fails with an OSError, or reading returns "", which is
                # not JSON (a ValueError).
                raise HttpError(
                    "unreadable",
                    f"no text: the page took longer than {SECONDS:g} s, or crashed the parser",
                ) from None

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            with contextlib.suppress(OSError):
                # Closing the pipe fails if buffered text cannot be written to the process, which has exited.
                worker.communicate()


def main_text(html: bytes, charset: str | None = None) -> str:
    """Return the main text of a page, one line per paragraph.

    Navigation, advertisements and comments are left out.

    Returns:
        "" if the page has no main text, or is damaged beyond what the parser repairs.
    """
    page = decoded(html, charset)
    try:
        return _trafilatura().extract(html if page is None else page, include_comments=False) or ""
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        # For malformed pages, the parser raises many kinds of errors.
        return ""


def _start_worker() -> subprocess.Popen[str]:
    command = [
        sys.executable,
        # With -P, Python does not import modules from the current folder.
        "-P",
        "-c",
        f"from qabench.retrieval.web.extract import serve; serve({SECONDS})",
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        # When the time is up, faulthandler writes the stack to standard error.
        stderr=subprocess.DEVNULL,
        # Otherwise, Ctrl-C in a terminal would reach the worker, too.
        start_new_session=True,
        text=True,
    )


def serve(seconds: float) -> None:
    """Answer requests on standard input, until a page takes longer than ``seconds``."""
    requests, answers = sys.stdin, sys.stdout
    _trafilatura()
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        for line in requests:
            html, charset = json.loads(line)
            # Unlike Python's timers, faulthandler ends the process even while C code holds the GIL.
            faulthandler.dump_traceback_later(seconds, exit=True)
            text = main_text(html.encode("latin-1"), charset)
            faulthandler.cancel_dump_traceback_later()
            answers.write(json.dumps(text) + "\n")
            answers.flush()


@cache
def _trafilatura() -> Any:
    try:
        import trafilatura
    except ImportError as error:
        raise MissingExtra(f"reading web pages needs {error.name}: {EXTRA}") from None
    return trafilatura
