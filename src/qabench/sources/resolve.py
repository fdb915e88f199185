"""Finds the verified local path of a pinned file: in a mirror folder, in the cache, or by a download."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from qabench.errors import SourceError, SourceUnavailable
from qabench.io.files import cache_dir
from qabench.sources.digest import find_mismatch, mismatch_error
from qabench.sources.download import DownloadFailed, Progress, download, request_url
from qabench.sources.table import SourceFile

Where = Literal["mirror", "cache"]

_OFFLINE_VARIABLES = ("QABENCH_OFFLINE", "HF_HUB_OFFLINE")


class NotProvided(SourceUnavailable):
    """SourceUnavailable with a separate ``reason``. It has no ``__init__``, so that worker processes can pickle it."""

    reason = ""


def cache_path(source: SourceFile) -> Path:
    """Return the path of ``source`` in the cache, whether it exists or not: sources/OWNER/REPO/COMMIT/PATH."""
    return cache_dir().joinpath("sources", *source.repo.split("/"), source.commit, *source.path.split("/"))


def mirror_dirs() -> list[Path]:
    """Return the folders in QABENCH_MIRROR (joined with os.pathsep), as absolute paths, whether they exist or not."""
    named = os.environ.get("QABENCH_MIRROR", "").split(os.pathsep)
    return [Path(folder).expanduser().absolute() for folder in named if folder]


def offline_variable() -> str | None:
    """Return the environment variable that forbids network access (set to 1, on, yes or true), or None."""
    for name in _OFFLINE_VARIABLES:
        if os.environ.get(name, "").strip().lower() in {"1", "on", "yes", "true"}:
            return name
    return None


def find_local(source: SourceFile, *, ignore_mirror: Path | None = None) -> tuple[Where, Path] | None:
    """Return the local file that ``local_path`` would use, as (where, path), or None. It is not verified.

    Does not use the network. ``ignore_mirror`` is a mirror folder to skip.
    """
    ignored = ignore_mirror.resolve() if ignore_mirror else None
    for folder in mirror_dirs():
        path = folder / source.mirror_path
        if folder.resolve() != ignored and path.is_file():
            return "mirror", path
    cached = cache_path(source)
    return ("cache", cached) if cached.is_file() else None


def available(source: SourceFile) -> Where | None:
    """Return where ``source`` is available locally: "mirror", "cache" or None. Its content is not verified."""
    local = find_local(source)
    return local[0] if local else None


def damage_advice(source: SourceFile, where: Where) -> str:
    """Return how to fix a local file whose content is not the pinned one."""
    if where == "mirror":
        return (
            f"A damaged mirror is never skipped silently: replace its file by {source.url}, "
            f"delete it, or remove the folder from QABENCH_MIRROR"
        )
    return f"Delete it, or run `qabench fetch {source.benchmark}` with network access, which replaces it"


def local_path(source: SourceFile, *, progress: Progress | None = None, ignore_mirror: Path | None = None) -> Path:
    """Return the absolute path of a local file with the pinned content of ``source``.

    The file is searched in the folders of QABENCH_MIRROR and in the cache, and otherwise downloaded to the cache (not
    with QABENCH_OFFLINE or HF_HUB_OFFLINE). It is verified in all cases.

    Args:
        source: the pinned file.
        progress: called during a download.
        ignore_mirror: a mirror folder to skip.

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
    if forbidden:
        raise _unavailable(source, f"the network is not used, because {forbidden} is set")
    return _download_to_cache(source, progress)


def _download_to_cache(source: SourceFile, progress: Progress | None) -> Path:
    from filelock import FileLock

    path = cache_path(source)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(path.name + ".lock")):
            if path.is_file():  # another process was faster, or the file is damaged
                if find_mismatch(path, source) is None:
                    return path
                os.replace(path, path.with_name(path.name + ".damaged"))
            download(source, path, progress=progress)
    except DownloadFailed as error:
        raise _unavailable(source, f"the download failed: {error}") from error
    except OSError as error:
        text = f"{source}: the cache file {path} cannot be written: {error}. Set QABENCH_CACHE to another folder."
        raise SourceError(text) from error
    return path


def _unavailable(source: SourceFile, reason: str) -> NotProvided:
    size = "size unknown" if source.size is None else f"{source.size} bytes"
    absent = [str(folder) for folder in mirror_dirs() if not folder.is_dir()]
    note = f" (QABENCH_MIRROR has a folder that does not exist: {', '.join(absent)})" if absent else ""
    error = NotProvided(
        f"{source} ({size}) is in no mirror{note} and not in the cache {cache_dir()}, and {reason}.\n"
        f"It is published at {request_url(source)}\n"
        f"Run `qabench fetch {source.benchmark}` with network access, or set QABENCH_MIRROR=DIR to a folder "
        f"that has it at {source.mirror_path}, such as one written by "
        f"`qabench fetch --mirror DIR {source.benchmark}` on another machine."
    )
    error.reason = reason
    return error
