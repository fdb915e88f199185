"""Download of a pinned file, with resuming, retries and a size limit.

The file appears only after verification.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from qabench.data.pinned import SourceFile, find_mismatch, mismatch_error
from qabench.errors import DigestMismatch, SourceError
from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import HttpError, check_status
from qabench.io.limits import Limits

if TYPE_CHECKING:
    import httpx2

Progress = Callable[[SourceFile, int, int | None], None]
"""Called as progress(source, bytes received, total bytes or None) during a download."""

# The limit for files of unknown size: GitHub refuses larger files outside of Git LFS.
_LARGEST_PLAIN_FILE = 100 << 20
SECONDS = 600.0  # for one attempt. The next one resumes the download
RETRY = Retry()


def request_url(source: SourceFile) -> str:
    """Return the URL of the request: ``source.url``, or OWNER/REPO/PATH on the server QABENCH_SOURCE_URL."""
    base = os.environ.get("QABENCH_SOURCE_URL")
    return f"{base.rstrip('/')}/{quote(str(source.mirror_path))}" if base else source.url


def download(source: SourceFile, destination: Path, *, progress: Progress | None = None) -> None:
    """Download ``source`` to ``destination``. The file appears there only after its content was verified.

    The data is written to ``NAME.incomplete`` in the same folder, so that a later call can resume
    the download, also after an error (``HttpError``, or SourceError for a full disk). The caller
    must hold the destination's lock.
    """
    part = destination.with_name(destination.name + ".incomplete")
    transfer = _Transfer(source, part, progress)
    advice = (
        f"It was downloaded from {transfer.url}; the pinned content is published at {source.url}"
    )
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        for last in (False, True):
            try:
                transfer.run()
                if wrong := find_mismatch(part, source):
                    raise mismatch_error(part, source, wrong, advice)
                break
            except DigestMismatch:
                part.unlink(missing_ok=True)
                # otherwise an older part may be wrong: try once more from the start
                if last or not transfer.resumed:
                    raise
        os.replace(part, destination)
    except OSError as error:
        raise SourceError(
            f"{source}: {part} cannot be written: {error}. Free some space, or set QABENCH_CACHE to another folder. "
            "The downloaded part is kept and resumed."
        ) from error


class _Transfer:
    """The attempts to download one ``.incomplete`` file."""

    def __init__(self, source: SourceFile, part: Path, progress: Progress | None) -> None:
        self.source, self.part, self.progress = source, part, progress
        self.resumed = False
        self.url = request_url(source)
        self.most = 0

    def run(self) -> None:
        """Download the rest of the file.

        Transient failures are retried. Progress resets the count of failures.
        """
        size = self.source.size
        if size is not None and self._size() > size:
            self.part.unlink()
        self.most = self._size()
        # an earlier process left the complete file, which is not yet verified
        self.resumed = self.most == size
        if not self.most or not self.resumed:
            most = _LARGEST_PLAIN_FILE if size is None else size
            headers = {"Accept-Encoding": "identity"}
            limits = Limits(most, SECONDS, redirects="any")
            try:
                with closing(HttpClient(limits, retry=RETRY, headers=headers)) as client:
                    client.retrying(lambda: self._try_once(client), self._has_grown)
            except HttpError as error:
                if error.reason != "too large":
                    raise
                message = f"{self.source}: {self.url} sends more than the expected {most} bytes."
                raise DigestMismatch(message) from error

    def _try_once(self, client: HttpClient) -> None:
        size = self._size()
        with client.stream(
            self.url, headers={"Range": f"bytes={size}-"} if size else None
        ) as response:
            if response.status_code == 416 and size:
                # The part is the complete file (of unknown size), or it is not the start of the
                # file.
                if find_mismatch(self.part, self.source) is not None:
                    self.part.unlink()
                    raise HttpError(
                        "status 416",
                        "the partial download cannot be resumed",
                        transient=True,
                        wait=0.0,
                    )
                return
            check_status(response)
            resuming = response.status_code == 206
            if resuming and not response.headers.get("Content-Range", "").startswith(
                f"bytes {size}-"
            ):
                self.part.unlink(missing_ok=True)
                raise HttpError(
                    "invalid response", "a range that was not requested", transient=True
                )
            self.resumed = self.resumed or (resuming and size > 0)
            self._write(response, size if resuming else 0)

    def _has_grown(self) -> bool:
        before, self.most = self.most, max(self.most, self._size())
        return self.most > before

    def _write(self, response: httpx2.Response, done: int) -> None:
        size = self.source.size
        with self.part.open("ab" if done else "wb") as file:
            # no chunk size: a dropped connection would lose an incomplete chunk
            for chunk in response.iter_bytes():
                done += len(chunk)
                file.write(chunk)
                if self.progress is not None:
                    self.progress(self.source, done, size)
            file.flush()
            os.fsync(file.fileno())
        if size is not None and done < size:
            raise HttpError("incomplete response", f"{done} of {size} bytes", transient=True)

    def _size(self) -> int:
        try:
            return self.part.stat().st_size
        except FileNotFoundError:
            return 0
