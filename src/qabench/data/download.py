"""Download of a pinned file, with resuming, retries and a size limit.

The file appears under its name only after its digest was verified.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from qabench.data.pinned import SourceFile, find_mismatch
from qabench.errors import DigestMismatch, SourceError
from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import HttpError, check_status
from qabench.io.limits import Limits

Progress = Callable[[SourceFile, int, int | None], None]
"""Called as progress(source, bytes received, total bytes or None) during a download."""

# The limit for files of unknown size: GitHub refuses larger files outside of Git LFS.
_MAX_PLAIN_FILE_BYTES = 100 << 20
# After this time, a new attempt resumes the download.
SECONDS_PER_ATTEMPT = 600.0
RETRY = Retry()


def request_url(source: SourceFile) -> str:
    """Return the URL of the request: ``source.url``, or its path on QABENCH_SOURCE_URL's server."""
    base = os.environ.get("QABENCH_SOURCE_URL")
    if not base:
        return source.url
    return f"{base.rstrip('/')}/{quote(str(source.mirror_path))}"


def download(source: SourceFile, destination: Path, *, progress: Progress | None = None) -> None:
    """Download ``source`` to ``destination``, which appears only after it was verified.

    The data is written to ``NAME.incomplete`` in the same folder, so that a later call can resume
    the download, even after an error (``HttpError``, or SourceError for a full disk). The caller
    must hold the destination's lock.
    """
    part = destination.with_name(destination.name + ".incomplete")
    try:
        resumed = _transfer(source, part, progress)
        wrong = find_mismatch(part, source)
        if wrong and resumed:
            # The part of an earlier download may be wrong, so try once more from the start.
            part.unlink()
            _transfer(source, part, progress)
            wrong = find_mismatch(part, source)
        if wrong:
            part.unlink()
            raise DigestMismatch(
                f"{source}: {request_url(source)} is not the pinned content: {wrong}. It is published at {source.url}."
            )
        os.replace(part, destination)
    except OSError as error:
        raise SourceError(
            f"{source}: {part} cannot be written: {error}. Free some space, or set QABENCH_CACHE to another folder. "
            "The downloaded part is kept and resumed."
        ) from error


def _transfer(source: SourceFile, part: Path, progress: Progress | None) -> bool:
    """Download the rest of the file, and return whether bytes that were there before were kept.

    Transient failures are retried. Progress resets the count of failures, so that a download over a
    bad connection can finish.
    """
    if source.size and _size(part) > source.size:
        part.unlink()
    transfer = _Transfer(source, part, progress)
    if transfer.most_received and transfer.most_received == source.size:
        # The earlier download is complete, but not yet verified.
        return True
    limits = Limits(source.size or _MAX_PLAIN_FILE_BYTES, SECONDS_PER_ATTEMPT, redirects="any")
    # Size, digest and byte ranges are those of the file, not of a compressed response.
    headers = {"Accept-Encoding": "identity"}
    with closing(HttpClient(limits, retry=RETRY, headers=headers)) as client:
        client.retrying(partial(transfer.attempt, client), transfer.has_grown)
    return transfer.resumed


@dataclass(slots=True)
class _Transfer:
    """A download in several attempts, each of which continues after the bytes received so far.

    Attributes:
        source: the file to download.
        part: the file with the bytes received so far, which may be of an earlier download.
        progress: called after each chunk.
        resumed: whether an attempt continued an earlier one or an earlier download.
        most_received: the largest size of ``part`` so far.
    """

    source: SourceFile
    part: Path
    progress: Progress | None
    resumed: bool = False
    most_received: int = field(init=False)

    def __post_init__(self) -> None:
        self.most_received = _size(self.part)

    def attempt(self, client: HttpClient) -> None:
        """Request the rest of the file and append it to ``part``.

        Raises:
            HttpError: the request failed, or the response is invalid or incomplete.
            OSError: ``part`` cannot be written.
        """
        size = _size(self.part)
        headers = {"Range": f"bytes={size}-"} if size else None
        with client.stream(request_url(self.source), headers=headers) as response:
            if response.status_code == 416 and size:
                # The earlier download is complete, or is not the start of the file.
                self.resumed = True
                return
            check_status(response)
            # A server that does not know ranges sends the whole file, with a status other than 206.
            at = size if response.status_code == 206 else 0
            start = f"bytes {at}-"
            if not response.headers.get("Content-Range", start).startswith(start):
                self.part.unlink(missing_ok=True)
                raise HttpError(
                    "invalid response", "a range that was not requested", transient=True
                )
            self.resumed = self.resumed or at > 0
            with self.part.open("ab" if at else "wb") as file:
                # With a chunk size, a dropped connection would lose an incomplete chunk.
                for chunk in response.iter_bytes():
                    file.write(chunk)
                    at += len(chunk)
                    if self.progress is not None:
                        self.progress(self.source, at, self.source.size)
                file.flush()
                os.fsync(file.fileno())
        if self.source.size and at < self.source.size:
            message = f"{at} of {self.source.size} bytes"
            raise HttpError("incomplete response", message, transient=True)

    def has_grown(self) -> bool:
        """Tell whether ``part`` is larger than ever before, which is progress."""
        before = self.most_received
        self.most_received = max(before, _size(self.part))
        return self.most_received > before


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
