"""Local paths of pinned files: in a mirror folder, in the cache, or downloaded to the cache.

``local_path`` is for users of the content, which it verifies, and downloads if necessary. The others
use no network: ``find_local`` returns the file that is there, unverified, ``available`` says whether
it is in a mirror or in the cache, and ``cache_path`` is where a download goes. ``check`` and
``fetch`` do the same for many files and report errors instead of raising them.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qabench.data.pinned import HubFile, SourceFile, find_mismatch
from qabench.errors import DataError, DigestMismatch, QabenchError, SourceError, SourceUnavailable
from qabench.io.environment import offline_variable
from qabench.io.files import cache_dir, replacing, sweep

if TYPE_CHECKING:
    from qabench.data.download import Progress

Where = Literal["mirror", "cache"]
# The limit for the rows of a dataset on the Hub, as JSON Lines.
MAX_HUB_BYTES = 1 << 30


def cache_path(source: SourceFile) -> Path:
    """Return the path of ``source`` in the cache, whether it exists or not."""
    return cache_dir() / "sources" / source.repo / source.commit / source.path


def find_local(source: SourceFile, *, ignore_mirror: Path | None = None) -> Path | None:
    """Return the local file that ``local_path`` would use, or None. It is not verified.

    The folders of QABENCH_MIRROR, which ``os.pathsep`` separates, are searched before the cache.
    """
    ignored = ignore_mirror and ignore_mirror.expanduser().resolve()
    paths = []
    for name in os.environ.get("QABENCH_MIRROR", "").split(os.pathsep):
        if name and Path(name).expanduser().resolve() != ignored:
            paths.append(_in_folder(source, Path(name)))
    paths.append(cache_path(source))
    for path in paths:
        if os.path.isfile(path):
            # ``Path.is_file`` would raise an error for a path in a folder without permission.
            return path
    return None


def available(source: SourceFile) -> Where | None:
    """Return where ``source`` is on this machine, unverified: "mirror", "cache" or None."""
    return _where(source, find_local(source))


def _where(source: SourceFile, path: Path | None) -> Where | None:
    """Return which kind of folder a local path of ``source`` is in."""
    if path is None:
        return None
    return "cache" if path == cache_path(source) else "mirror"


def local_path(
    source: SourceFile, *, progress: Progress | None = None, ignore_mirror: Path | None = None
) -> Path:
    """Return the absolute path of a local file with the pinned content of ``source``.

    The content is verified. The file is searched in the folders of QABENCH_MIRROR (except
    ``ignore_mirror``) and in the cache, and otherwise downloaded to the cache (not with
    QABENCH_OFFLINE or HF_HUB_OFFLINE).

    Raises:
        SourceUnavailable: the file is not available and cannot be downloaded.
        DigestMismatch: a mirror, the server or (offline) the cache has different content.
        SourceError: a file cannot be read or written.
    """
    local = find_local(source, ignore_mirror=ignore_mirror)
    forbidden = offline_variable()
    if local is not None:
        # A damaged file in the cache is replaced by a download. One in a mirror is never skipped
        # silently, and without a network, neither is one in the cache.
        may_replace = local == cache_path(source) and not forbidden
        if not (may_replace and find_mismatch(local, source)):
            # The file is not read twice, because ``find_mismatch`` keeps digests.
            return _verified(source, local)
    # With HF_HUB_OFFLINE, the cache of ``datasets`` may still have the rows of a dataset.
    if forbidden and not (isinstance(source, HubFile) and forbidden == "HF_HUB_OFFLINE"):
        raise _unavailable(source, f"the network is not used, because {forbidden} is set")
    return _download_to_cache(source, progress)


def _verified(source: SourceFile, path: Path) -> Path:
    """Return ``path``. Raises DigestMismatch if its content is not the pinned one."""
    if wrong := find_mismatch(path, source):
        raise DigestMismatch(
            f"{source}: {path} is not the pinned content: {wrong}. Delete it (or remove its folder from "
            f"QABENCH_MIRROR), and run `qabench fetch {source.benchmark}` with network access. It is published at "
            f"{source.url}."
        )
    return path


def _download_to_cache(source: SourceFile, progress: Progress | None) -> Path:
    from filelock import FileLock

    from qabench.data.download import download, request_url
    from qabench.io.http_error import HttpError

    path = cache_path(source)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(path.name + ".lock")):
            if path.is_file():
                # Another process was faster, or the file is damaged.
                if find_mismatch(path, source) is None:
                    return path
                os.replace(path, path.with_name(path.name + ".damaged"))
            if isinstance(source, HubFile) and not os.environ.get("QABENCH_SOURCE_URL"):
                _write_hub_rows(source, path)
            else:
                download(source, path, progress=progress)
    except HttpError as error:
        # Without a pinned size, the limit is that of ``download``, which the error names.
        if error.reason == "too large" and source.size:
            raise DigestMismatch(
                f"{source}: {request_url(source)} has more than the pinned {source.size} bytes"
            ) from error
        raise _unavailable(source, f"the download failed: {error}") from error
    except OSError as error:
        raise SourceError(
            f"{source}: the cache file {path} cannot be written: {error}. Set QABENCH_CACHE to another folder."
        ) from error
    return path


def _write_hub_rows(source: HubFile, path: Path) -> None:
    """Write the rows of a dataset on the Hub to a file, which appears only after it was verified."""
    part = path.with_name(path.name + ".incomplete")
    lines = []
    size = 0
    try:
        for row in source.dataset.rows():
            lines.append((json.dumps(row, ensure_ascii=False) + "\n").encode())
            size += len(lines[-1])
            # A Parquet file of a few kilobytes can repeat one long value in a million rows.
            if size > MAX_HUB_BYTES:
                raise DataError(
                    f"{source.dataset.path} has more than {MAX_HUB_BYTES >> 20:,} MiB in its first {len(lines):,} "
                    "rows, which is the limit; name the columns to keep with columns=[...]"
                )
    except OSError as error:
        raise _unavailable(source, f"datasets cannot load it: {error}") from error
    part.write_bytes(b"".join(lines))
    os.replace(_verified(source, part), path)


def _unavailable(source: SourceFile, reason: str) -> SourceUnavailable:
    from qabench.data.download import request_url

    mirror = os.environ.get("QABENCH_MIRROR") or "not set"
    return SourceUnavailable(
        f"{source} is neither in a mirror (QABENCH_MIRROR is {mirror}) nor in the cache {cache_dir()}, and {reason}.\n"
        f"It is published at {request_url(source)}\n"
        f"Run `qabench fetch {source.benchmark}` with network access, or set QABENCH_MIRROR=DIR to a folder "
        f"that has it at {source.mirror_path}, such as one written by "
        f"`qabench fetch --mirror DIR {source.benchmark}` on another machine."
    )


State = Literal["ok", "missing", "damaged", "failed"]


@dataclass(frozen=True)
class FileResult:
    """The result for one file: its state, the local file if there is one, and a note or the error.

    The state is "missing" if the file is neither available nor downloadable, "damaged" if its
    content is not the pinned one, and "failed" if it could not be read or written.
    """

    source: SourceFile
    state: State
    path: Path | None
    detail: str

    @property
    def where(self) -> Where | None:
        """Return where the local file is, or None without one."""
        return _where(self.source, self.path)

    @property
    def ok(self) -> bool:
        """Tell whether the file is available with the pinned content."""
        return self.state == "ok"


def check(sources: Iterable[SourceFile], *, directory: Path | None = None) -> list[FileResult]:
    """Verify the files in the mirrors and the cache, or in a mirror folder, without the network."""

    def find(source: SourceFile) -> Path | None:
        if not directory:
            return find_local(source)
        path = _in_folder(source, directory)
        return path if path.is_file() else None

    def verify(source: SourceFile) -> tuple[Path, str]:
        if path := find(source):
            return _verified(source, path), ""
        raise SourceUnavailable(f"{source} is not in {directory or 'a mirror or the cache'}")

    return [_result(source, verify, find) for source in sources]


def fetch(
    sources: Iterable[SourceFile], *, mirror: Path | None = None, progress: Progress | None = None
) -> list[FileResult]:
    """Make each file available locally (see ``local_path``) and continue after failures.

    With ``mirror``, the verified files are copied to that folder, as OWNER/REPO/PATH. There is one
    result per file.
    """

    def provide(source: SourceFile) -> tuple[Path, str]:
        if mirror is None:
            note = "" if available(source) else "downloaded"
            return local_path(source, progress=progress), note
        target = _in_folder(source, mirror)
        sweep(target.parent, glob.escape(target.name))
        exists = target.is_file()
        if exists and not find_mismatch(target, source):
            return target, "was there"
        # This folder may be in QABENCH_MIRROR, where its wrong file would be found first, so the
        # folder is ignored.
        path = local_path(source, progress=progress, ignore_mirror=mirror)
        with replacing(target) as file, path.open("rb") as original:
            shutil.copyfileobj(original, file, 1 << 20)
        return target, "replaced" if exists else "written"

    return [_result(source, provide) for source in sources]


def _in_folder(source: SourceFile, folder: Path) -> Path:
    return folder.expanduser().absolute() / source.mirror_path


def _result(
    source: SourceFile,
    action: Callable[[SourceFile], tuple[Path, str]],
    find_after: Callable[[SourceFile], Path | None] = find_local,
) -> FileResult:
    """Return the result of an action on a file, also if it raises an error.

    Args:
        source: the file.
        action: returns the local path and a note.
        find_after: finds the local file after an error, such as a damaged one.
    """
    state: State = "failed"
    try:
        return FileResult(source, "ok", *action(source))
    except DigestMismatch as error:
        state, note = "damaged", str(error)
    except SourceUnavailable as error:
        state, note = "missing", str(error).partition("\n")[0]
    except (OSError, QabenchError) as error:
        note = str(error)
    return FileResult(source, state, find_after(source), note)
