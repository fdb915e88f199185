"""From a pinned file to a verified local path: a mirror folder, else the cache, else a download."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from qabench.errors import SourceError, SourceUnavailable
from qabench.paths import cache_dir
from qabench.sources.digest import find_mismatch, mismatch_error
from qabench.sources.download import DownloadFailed, Progress, download, request_url
from qabench.sources.table import SourceFile

Where = Literal["mirror", "cache"]

_OFFLINE_VARIABLES = ("QABENCH_OFFLINE", "HF_HUB_OFFLINE")


class NotProvided(SourceUnavailable):
    """SourceUnavailable with its bare ``reason``. Without an own __init__, so that worker processes can pickle it."""

    reason = ""


def cache_path(source: SourceFile) -> Path:
    """Where ``source`` lies in the cache, be it there or not: sources/OWNER/REPO/COMMIT/PATH."""
    return cache_dir().joinpath("sources", *source.repo.split("/"), source.commit, *source.path.split("/"))


def mirror_dirs() -> list[Path]:
    """The folders of QABENCH_MIRROR (joined with os.pathsep), made absolute, be they there or not."""
    named = os.environ.get("QABENCH_MIRROR", "").split(os.pathsep)
    return [Path(folder).expanduser().absolute() for folder in named if folder]


def offline_variable() -> str | None:
    """The environment variable that forbids the network (set to 1, on, yes or true), or None."""
    for name in _OFFLINE_VARIABLES:
        if os.environ.get(name, "").strip().lower() in {"1", "on", "yes", "true"}:
            return name
    return None


def find_local(source: SourceFile, *, ignore_mirror: Path | None = None) -> tuple[Where, Path] | None:
    """The local file that ``local_path`` would use, not verified yet: (where, path), or None. Never uses the network.

    ``ignore_mirror`` leaves one mirror folder out.
    """
    ignored = ignore_mirror.resolve() if ignore_mirror else None
    for folder in mirror_dirs():
        path = folder / source.mirror_path
        if folder.resolve() != ignored and path.is_file():
            return "mirror", path
    cached = cache_path(source)
    return ("cache", cached) if cached.is_file() else None


def available(source: SourceFile) -> Where | None:
    """Where ``source`` would come from without a network: "mirror", "cache", or None. Its content is not looked at."""
    found = find_local(source)
    return found[0] if found else None


def damage_advice(source: SourceFile, where: Where) -> str:
    """What to do about a local file with other content than the pinned one."""
    if where == "mirror":
        return (
            f"The mirror is never passed over silently: replace its file by {source.url}, "
            f"delete it, or take the folder out of QABENCH_MIRROR"
        )
    return f"Delete it, or run `qabench fetch {source.benchmark}` where there is a network, which replaces it"


def local_path(source: SourceFile, *, progress: Progress | None = None, ignore_mirror: Path | None = None) -> Path:
    """The absolute path of a local file that holds the pinned content of ``source``, downloaded if need be.

    Looked for in the folders of QABENCH_MIRROR, then the cache, then downloaded into the cache (not with
    QABENCH_OFFLINE or HF_HUB_OFFLINE); verified whichever way it came. ``ignore_mirror`` leaves one mirror folder out.

    Raises SourceUnavailable where the file is nowhere and cannot be downloaded; DigestMismatch where a mirror, the
    server or (offline) the cache has other content; SourceError where a file cannot be read or written.
    """
    found = find_local(source, ignore_mirror=ignore_mirror)
    forbidden = offline_variable()
    if found is not None:
        where, path = found
        try:
            wrong = find_mismatch(path, source)
        except OSError as error:
            raise SourceError(f"{source}: {path} cannot be read: {error}.") from error
        if wrong is None:
            return path
        if where == "mirror":
            raise mismatch_error(path, source, wrong, damage_advice(source, where))
        if forbidden:  # otherwise the download below mends the cache
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
            if path.is_file():  # another process was first, or the entry is damaged
                if find_mismatch(path, source) is None:
                    return path
                os.replace(path, path.with_name(path.name + ".damaged"))
            download(source, path, progress=progress)
    except DownloadFailed as error:
        raise _unavailable(source, f"the download failed: {error}") from error
    except OSError as error:
        text = f"{source}: the cache entry {path} cannot be made: {error}. QABENCH_CACHE can name another folder."
        raise SourceError(text) from error
    return path


def _unavailable(source: SourceFile, reason: str) -> NotProvided:
    size = "size unknown" if source.size is None else f"{source.size} bytes"
    absent = [str(folder) for folder in mirror_dirs() if not folder.is_dir()]
    note = f" (QABENCH_MIRROR names a folder that is not there: {', '.join(absent)})" if absent else ""
    error = NotProvided(
        f"{source} ({size}) is in no mirror{note} and not in the cache {cache_dir()}, and {reason}.\n"
        f"It is published at {request_url(source)}\n"
        f"Run `qabench fetch {source.benchmark}` where there is a network, or set QABENCH_MIRROR=DIR to a folder "
        f"that has it at {source.mirror_path}, for instance one filled by "
        f"`qabench fetch --mirror DIR {source.benchmark}` on a connected machine."
    )
    error.reason = reason
    return error
