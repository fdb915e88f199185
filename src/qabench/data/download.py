"""Download of a pinned file, with resuming, retries and a size limit.

The file appears under its name only after its digest was verified.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
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
        # If the part of an earlier download is wrong, try once more from the start.
        if find_mismatch(part, source) and resumed:
            part.unlink()
            _transfer(source, part, progress)
        if wrong := find_mismatch(part, source):
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
    """Download the rest of the file, and return whether an earlier download was resumed.

    Transient failures are retried. Progress resets the count of failures, so that a download over a
    bad connection can finish.
    """
    if source.size and _size(part) > source.size:
        part.unlink()
    largest = _size(part)
    if largest and largest == source.size:
        # The earlier download is complete, but not yet verified.
        return True
    resumed = False

    def attempt() -> None:
        nonlocal resumed
        size = _size(part)
        headers = {"Range": f"bytes={size}-"} if size else None
        with client.stream(request_url(source), headers=headers) as response:
            if response.status_code == 416 and size:
                # The earlier download is complete, or is not the start of the file.
                resumed = True
                return
            check_status(response)
            at = size if response.status_code == 206 else 0
            start = f"bytes {at}-"
            if not response.headers.get("Content-Range", start).startswith(start):
                part.unlink(missing_ok=True)
                raise HttpError("invalid response", "another range than requested", transient=True)
            resumed = resumed or at > 0
            with part.open("ab" if at else "wb") as file:
                # With a chunk size, a dropped connection would lose an incomplete chunk.
                for chunk in response.iter_bytes():
                    file.write(chunk)
                    at += len(chunk)
                    if progress is not None:
                        progress(source, at, source.size)
                file.flush()
                os.fsync(file.fileno())
        if source.size and at < source.size:
            raise HttpError("incomplete response", f"{at} of {source.size} bytes", transient=True)

    def has_grown() -> bool:
        nonlocal largest
        before, largest = largest, max(largest, _size(part))
        return largest > before

    limits = Limits(source.size or _MAX_PLAIN_FILE_BYTES, SECONDS_PER_ATTEMPT, redirects="any")
    # Size, digest and byte ranges are those of the file, not of a compressed response.
    headers = {"Accept-Encoding": "identity"}
    with closing(HttpClient(limits, retry=RETRY, headers=headers)) as client:
        client.retrying(attempt, has_grown)
    return resumed


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
