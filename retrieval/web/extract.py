"""The main text of an HTML page, by trafilatura.

It runs in a worker process, which is ended if a page takes too long.
"""

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
# The time for one page: a tag with 60,000 attributes takes the parser minutes.
SECONDS = 30.0


class Extractor:
    """One worker process that reads pages, for several threads.

    It ends with this process, or if a page takes too long.

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
            HttpError: it takes longer than ``SECONDS``, or ends the worker process.
        """
        with self._lock:
            self._worker = self._worker or _started()
            assert self._worker.stdin is not None and self._worker.stdout is not None
            try:
                # A character per byte.
                self._worker.stdin.write(json.dumps([html.decode("latin-1"), charset]) + "\n")
                self._worker.stdin.flush()
                return str(json.loads(self._worker.stdout.readline()))
            except (OSError, ValueError):
                self._end()
                raise HttpError("unreadable", f"no text within {SECONDS:g} s") from None

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            with contextlib.suppress(OSError):
                # Text may remain that was not written yet.
                worker.communicate()


def main_text(html: bytes, charset: str | None = None) -> str:
    """Return the text of a page, one line per paragraph.

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
        # The parser meets any input of the web, and may raise anything.
        return ""


def _started() -> subprocess.Popen[str]:
    command = [
        sys.executable,
        # Modules are not loaded from the current folder.
        "-P",
        "-c",
        f"from qabench.retrieval.web.extract import serve; serve({SECONDS})",
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        # A process that is ended because of the time writes its stack there.
        stderr=subprocess.DEVNULL,
        # A terminal's Ctrl-C would reach this process as well.
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
            # Unlike a timer of Python, this ends the process also while C code holds the
            # interpreter's lock.
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
