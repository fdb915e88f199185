"""Download of a pinned file, with resuming, retries and a size limit; the file appears only after verification."""

from __future__ import annotations

import errno
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from qabench.errors import DigestMismatch, SourceError
from qabench.io.http import retry_after
from qabench.sources.digest import find_mismatch, verify
from qabench.sources.table import SourceFile

if TYPE_CHECKING:
    import httpx2

Progress = Callable[[SourceFile, int, int | None], None]
"""Called as progress(source, bytes received, total bytes or None) during a download."""

# The limit for files of unknown size: GitHub refuses larger files outside of Git LFS.
_LARGEST_PLAIN_FILE = 100 << 20
_RETRIED_STATUS = frozenset({408, 425, 429})
# During this time, an unreachable host gets only one attempt per file, so that 100 files do not take minutes.
_UNREACHABLE_S = 60.0
_unreachable: dict[str, float] = {}


class DownloadFailed(SourceError):
    """The file could not be downloaded. The message has only the reason; the caller adds the file and how to fix it."""


@dataclass(frozen=True)
class Retry:
    """Retries and timeouts of a download, in seconds. ``attempts``: attempts in a row without any progress."""

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 60.0
    connect_timeout: float = 10.0
    read_timeout: float = 30.0

    def wait(self, failures: int, asked: float | None) -> float:
        """The seconds before the next attempt, at most ``longest_wait``: the server's value, or exponential backoff."""
        if asked is not None:
            return min(max(asked, 0.0), self.longest_wait)
        return min(self.first_wait * 2.0 ** (failures - 1), self.longest_wait) * random.uniform(0.5, 1.0)


RETRY = Retry()


class _Transient(Exception):
    """A failed attempt that may succeed if repeated. ``asked`` is the server's Retry-After in seconds."""

    def __init__(self, reason: str, asked: float | None = None) -> None:
        super().__init__(reason)
        self.asked = asked


def request_url(source: SourceFile) -> str:
    """The URL of the request: ``source.url``, or OWNER/REPO/PATH on the web server QABENCH_SOURCE_URL if it is set."""
    base = os.environ.get("QABENCH_SOURCE_URL")
    return f"{base.rstrip('/')}/{quote(str(source.mirror_path))}" if base else source.url


def download(source: SourceFile, destination: Path, *, progress: Progress | None = None) -> None:
    """Downloads ``source`` to ``destination``. The file appears there only after its content was verified.

    The data is written to ``NAME.incomplete`` in the same folder, so that a later call can resume the download. The
    caller must hold the lock of the destination.

    Raises:
        DownloadFailed: no network, refused by the server, or too many failed attempts.
        DigestMismatch: the server has different content.
        SourceError: the disk is full or not writable; the part that was downloaded is kept.
    """
    part = destination.with_name(destination.name + ".incomplete")
    transfer = _Transfer(source, part, progress)
    advice = f"It was downloaded from {transfer.url}; the pinned content is published at {source.url}"
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        for last in (False, True):
            try:
                transfer.run()
                verify(part, source, fix=advice)
                break
            except DigestMismatch:
                part.unlink(missing_ok=True)
                if last or not transfer.resumed:  # otherwise an older part may be wrong: try once more from the start
                    raise
        os.replace(part, destination)
    except OSError as error:
        raise _storage_error(error, source, part) from error


class _Transfer:
    """The attempts to download one ``.incomplete`` file."""

    def __init__(self, source: SourceFile, part: Path, progress: Progress | None) -> None:
        self.source, self.part, self.progress = source, part, progress
        self.resumed = False
        self.url = request_url(source)

    def run(self) -> None:
        """Downloads the rest of the file. Transient failures are retried; progress resets the count of failures."""
        import httpx2

        host = urlsplit(self.url).netloc
        recently_down = time.monotonic() - _unreachable.get(host, -_UNREACHABLE_S) < _UNREACHABLE_S
        attempts = 1 if recently_down else RETRY.attempts
        timeout = httpx2.Timeout(RETRY.read_timeout, connect=RETRY.connect_timeout)
        headers = {"User-Agent": _user_agent(), "Accept-Encoding": "identity"}
        failures, most = 0, self._have()
        with httpx2.Client(timeout=timeout, headers=headers, follow_redirects=True) as client:
            while not self._is_full():
                try:
                    self._try_once(client)
                    break
                except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
                    raise DownloadFailed(f"{self.url} is not a web address: {error}") from error
                except (httpx2.TransportError, _Transient) as error:
                    grown, most = self._have() > most, max(most, self._have())
                    failures = 1 if grown else failures + 1
                    if failures >= attempts:
                        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
                            _unreachable[host] = time.monotonic()
                        raise DownloadFailed(f"{_reason(error)} (tries: {failures})") from error
                    time.sleep(RETRY.wait(failures, getattr(error, "asked", None)))
                except httpx2.HTTPError as error:  # too many redirects, a broken encoding
                    raise DownloadFailed(_reason(error)) from error
        _unreachable.pop(host, None)

    def _try_once(self, client: httpx2.Client) -> None:
        have = self._have()
        with client.stream("GET", self.url, headers={"Range": f"bytes={have}-"} if have else {}) as response:
            if response.status_code == 416 and have:
                self._settle_unsatisfiable()
                return
            _check_status(response)
            resuming = response.status_code == 206
            if resuming and _range_start(response) != have:
                self.part.unlink(missing_ok=True)
                raise _Transient("the server sent a range that was not requested")
            self.resumed = self.resumed or (resuming and have > 0)
            self._write(response, have if resuming else 0)

    def _write(self, response: httpx2.Response, done: int) -> None:
        size = self.source.size
        limit = _LARGEST_PLAIN_FILE if size is None else size
        with self.part.open("ab" if done else "wb") as file:
            for chunk in response.iter_bytes():  # no chunk size: a dropped connection would lose an incomplete chunk
                done += len(chunk)
                if done > limit:
                    raise DigestMismatch(f"{self.source}: {self.url} sends more than the expected {limit} bytes.")
                file.write(chunk)
                if self.progress is not None:
                    self.progress(self.source, done, size)
            file.flush()
            os.fsync(file.fileno())
        if size is not None and done < size:
            raise _Transient(f"the server sent {done} of {size} bytes")

    def _settle_unsatisfiable(self) -> None:
        """After status 416: the part is the complete file (of unknown size), or it is not the start of the file."""
        if find_mismatch(self.part, self.source) is not None:
            self.part.unlink()
            raise _Transient("the server cannot resume the partial download (416)", asked=0.0)

    def _have(self) -> int:
        try:
            return self.part.stat().st_size
        except FileNotFoundError:
            return 0

    def _is_full(self) -> bool:
        have, size = self._have(), self.source.size
        if size is not None and have > size:
            self.part.unlink()
            return False
        if size is not None and have == size > 0:
            self.resumed = True  # complete but unverified: left by an earlier process
            return True
        return False


def _check_status(response: httpx2.Response) -> None:
    status = response.status_code
    if status in (200, 206):
        return
    reason = f"the server answered {status} {response.reason_phrase}".rstrip()
    if status in _RETRIED_STATUS or status >= 500:
        raise _Transient(reason, retry_after(response.headers.get("Retry-After")))
    raise DownloadFailed(reason)


def _range_start(response: httpx2.Response) -> int | None:
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _reason(error: Exception) -> str:
    text = str(error) or "no details"
    return text if isinstance(error, _Transient) else f"{type(error).__name__}: {text}"


def _storage_error(error: OSError, source: SourceFile, part: Path) -> SourceError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        need = "of unknown size" if source.size is None else f"of {source.size} bytes"
        return SourceError(
            f"{source}: no space left for {part}, a file {need}. The downloaded part is kept and resumed: "
            "free some space and try again, or set QABENCH_CACHE to another folder."
        )
    return SourceError(f"{source}: {part} cannot be written: {error}. Set QABENCH_CACHE to another folder.")


@cache
def _user_agent() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"qabench/{version('qabench')}"
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "qabench/unknown"
