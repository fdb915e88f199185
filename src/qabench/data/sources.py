"""Verified local paths of pinned files: from a mirror folder, from the cache, or by a download.

Takes one file or many.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qabench.data.pinned import HubFile, SourceFile, find_mismatch, mismatch_error
from qabench.errors import DigestMismatch, QabenchError, SourceError, SourceUnavailable
from qabench.io.environment import offline_variable
from qabench.io.files import cache_dir, replacing, sweep

if TYPE_CHECKING:
    from qabench.data.download import Progress

Where = Literal["mirror", "cache"]


class NotProvided(SourceUnavailable):
    """SourceUnavailable with a separate ``reason``.

    It has no ``__init__``, so that worker processes can pickle it.
    """

    reason = ""


def cache_path(source: SourceFile) -> Path:
    """Return the path of ``source`` in the cache, whether it exists or not: sources/OWNER/REPO/COMMIT/PATH."""
    return cache_dir() / "sources" / source.repo / source.commit / source.path


def mirror_dirs() -> list[Path]:
    """Return the folders in QABENCH_MIRROR (joined with os.pathsep), as absolute paths, whether they exist or not."""
    named = os.environ.get("QABENCH_MIRROR", "").split(os.pathsep)
    return [Path(folder).expanduser().absolute() for folder in named if folder]


def find_local(
    source: SourceFile, *, ignore_mirror: Path | None = None
) -> tuple[Where, Path] | None:
    """Return the local file that ``local_path`` would use, as (where, path), or None.

    It is not verified.
    """
    ignored = ignore_mirror.resolve() if ignore_mirror else None
    for folder in mirror_dirs():
        path = folder / source.mirror_path
        if folder.resolve() != ignored and path.is_file():
            return "mirror", path
    cached = cache_path(source)
    return ("cache", cached) if cached.is_file() else None


def available(source: SourceFile) -> Where | None:
    """Return where ``source`` is available locally: "mirror", "cache" or None.

    Its content is not verified.
    """
    return (find_local(source) or (None,))[0]


def damage_advice(source: SourceFile, where: Where) -> str:
    """Return how to fix a local file whose content is not the pinned one."""
    if where == "mirror":
        return (
            f"A damaged mirror is never skipped silently: replace its file by {source.url}, "
            f"delete it, or remove the folder from QABENCH_MIRROR"
        )
    return f"Delete it, or run `qabench fetch {source.benchmark}` with network access, which replaces it"


def local_path(
    source: SourceFile, *, progress: Progress | None = None, ignore_mirror: Path | None = None
) -> Path:
    """Return the absolute path of a local file with the pinned content of ``source``, which is verified.

    The file is searched in the folders of QABENCH_MIRROR (except ``ignore_mirror``) and in the
    cache, and otherwise downloaded to the cache (not with QABENCH_OFFLINE or HF_HUB_OFFLINE).

    Raises:
        SourceUnavailable: the file is not available and cannot be downloaded.
        DigestMismatch: a mirror, the server or (offline) the cache has different content.
        SourceError: a file cannot be read or written.
    """
    local = find_local(source, ignore_mirror=ignore_mirror)
    forbidden = offline_variable()
    if local is not None:
        where, path = local
        try:
            wrong = find_mismatch(path, source)
        except OSError as error:
            raise SourceError(f"{source}: {path} cannot be read: {error}.") from error
        if wrong is None:
            return path
        if where == "mirror":
            raise mismatch_error(path, source, wrong, damage_advice(source, where))
        if forbidden:  # otherwise the download below replaces the file
            advice = f"It cannot be downloaded again while {forbidden} is set. {damage_advice(source, where)}"
            raise mismatch_error(path, source, wrong, advice)
    # the cache of datasets may have rows of the Hub
    if forbidden and not (isinstance(source, HubFile) and forbidden == "HF_HUB_OFFLINE"):
        raise _unavailable(source, f"the network is not used, because {forbidden} is set")
    return _download_to_cache(source, progress)


def _download_to_cache(source: SourceFile, progress: Progress | None) -> Path:
    from filelock import FileLock

    from qabench.data.download import download
    from qabench.io.http_error import HttpError

    path = cache_path(source)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(path.name + ".lock")):
            if path.is_file():  # another process was faster, or the file is damaged
                if find_mismatch(path, source) is None:
                    return path
                os.replace(path, path.with_name(path.name + ".damaged"))
            if isinstance(source, HubFile) and not os.environ.get("QABENCH_SOURCE_URL"):
                _write_hub_rows(source, path)
            else:
                download(source, path, progress=progress)
    except HttpError as error:
        raise _unavailable(source, f"the download failed: {error}") from error
    except OSError as error:
        text = f"{source}: the cache file {path} cannot be written: {error}. Set QABENCH_CACHE to another folder."
        raise SourceError(text) from error
    return path


def _write_hub_rows(source: HubFile, path: Path) -> None:
    """Write the rows of a dataset on the Hub to a file, which appears only after its content was verified."""
    part = path.with_name(path.name + ".incomplete")
    try:
        source.dataset.write(part)
    except OSError as error:
        raise _unavailable(source, f"datasets cannot load it: {error}") from error
    if wrong := find_mismatch(part, source):
        advice = "The cache of datasets may have another revision, which it loads without network"
        raise mismatch_error(part, source, wrong, advice)
    os.replace(part, path)


def _unavailable(source: SourceFile, reason: str) -> NotProvided:
    from qabench.data.download import request_url

    size = "size unknown" if source.size is None else f"{source.size} bytes"
    absent = [str(folder) for folder in mirror_dirs() if not folder.is_dir()]
    note = (
        f" (QABENCH_MIRROR has a folder that does not exist: {', '.join(absent)})" if absent else ""
    )
    error = NotProvided(
        f"{source} ({size}) is in no mirror{note} and not in the cache {cache_dir()}, and {reason}.\n"
        f"It is published at {request_url(source)}\n"
        f"Run `qabench fetch {source.benchmark}` with network access, or set QABENCH_MIRROR=DIR to a folder "
        f"that has it at {source.mirror_path}, such as one written by "
        f"`qabench fetch --mirror DIR {source.benchmark}` on another machine."
    )
    error.reason = reason
    return error


State = Literal["ok", "missing", "damaged", "failed"]


@dataclass(frozen=True)
class FileResult:
    """The result for one file: its state, the local file if there is one, and a note or the error.

    It is "missing" if it is not available and not downloadable, "damaged" if its content is not the
    pinned one, and "failed" if it could not be read or written.
    """

    source: SourceFile
    state: State
    where: Where | None = None
    path: Path | None = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the file is available with the pinned content."""
        return self.state == "ok"


def check(sources: Iterable[SourceFile], *, directory: Path | None = None) -> list[FileResult]:
    """Verify the files in the mirrors and the cache, or in the mirror folder ``directory``.

    Works offline.
    """
    return [
        _check_one(source, directory.expanduser().absolute() if directory else None)
        for source in sources
    ]


def _check_one(source: SourceFile, directory: Path | None) -> FileResult:
    local = find_local(source)
    if directory:
        target = directory / source.mirror_path
        local = ("mirror", target) if target.is_file() else None
    if local is None:
        return FileResult(
            source,
            "missing",
            detail="not there" if directory else "in no mirror and not in the cache",
        )
    where, path = local
    try:
        wrong = find_mismatch(path, source)
    except OSError as error:
        return FileResult(source, "failed", where, path, f"cannot be read: {error}")
    if wrong is not None:
        return FileResult(
            source, "damaged", where, path, f"{wrong}. {damage_advice(source, where)}."
        )
    return FileResult(source, "ok", where, path)


def fetch(sources: Iterable[SourceFile], *, progress: Progress | None = None) -> list[FileResult]:
    """Make each file available locally (see ``local_path``) and continue after failures.

    One result per file.
    """
    results = []
    for source in sources:
        was = available(source)
        try:
            path = local_path(source, progress=progress)
            results.append(
                FileResult(source, "ok", available(source), path, "" if was else "downloaded")
            )
        except SourceError as error:
            results.append(_failure(source, error))
    return results


def write_mirror(
    sources: Iterable[SourceFile], directory: Path, *, progress: Progress | None = None
) -> list[FileResult]:
    """Copy each file, verified, to ``directory``/OWNER/REPO/PATH, and continue after failures.

    One result per file.
    """
    return [_mirror_one(source, directory.expanduser().absolute(), progress) for source in sources]


def _mirror_one(source: SourceFile, directory: Path, progress: Progress | None) -> FileResult:
    target = directory / source.mirror_path
    sweep(target.parent, glob.escape(target.name))
    try:
        there = target.is_file()
        if there and find_mismatch(target, source) is None:
            return FileResult(source, "ok", "mirror", target, "was there")
        # This folder may be in QABENCH_MIRROR, where its wrong file would be found first, so the
        # folder is ignored.
        path = local_path(source, progress=progress, ignore_mirror=directory)
        with replacing(target) as copy, path.open("rb") as original:
            shutil.copyfileobj(original, copy, 1 << 20)
    except SourceError as error:
        return _failure(source, error)
    except (OSError, QabenchError) as error:
        return FileResult(source, "failed", detail=str(error))
    return FileResult(source, "ok", "mirror", target, "replaced" if there else "written")


def _failure(source: SourceFile, error: SourceError) -> FileResult:
    if isinstance(error, NotProvided):
        return FileResult(source, "missing", detail=error.reason)
    local = find_local(source)
    where, path = local or (None, None)
    state: State = "damaged" if isinstance(error, DigestMismatch) else "failed"
    return FileResult(source, state, where, path, str(error))
