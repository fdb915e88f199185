"""Fetches, checks or mirrors many files. A failure of one file does not stop the others."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qabench.errors import DigestMismatch, QabenchError, SourceError
from qabench.io.files import replacing, sweep
from qabench.sources.digest import find_mismatch
from qabench.sources.download import Progress
from qabench.sources.resolve import NotProvided, Where, available, damage_advice, find_local, local_path
from qabench.sources.table import SourceFile

State = Literal["ok", "missing", "damaged", "failed"]


@dataclass(frozen=True)
class FileResult:
    """The result for one file.

    Attributes:
        source: the pinned file.
        state: "ok" (available and verified), "missing" (not available and not downloadable), "damaged" (the content is
            not the pinned one) or "failed" (the file could not be read or written).
        where: whether the local file is in a mirror or in the cache; None if there is no local file.
        path: the local file, if there is one.
        detail: a note, the reason why a file is missing, or the error message.
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
    """Verify the files in the mirrors and the cache, or in the mirror folder ``directory``; works offline."""
    return [_check_one(source, directory) for source in sources]


def fetch(sources: Iterable[SourceFile], *, progress: Progress | None = None) -> list[FileResult]:
    """Make each file available locally (see ``local_path``) and continues after failures. One result per file."""
    results = []
    for source in sources:
        was = available(source)
        try:
            path = local_path(source, progress=progress)
            results.append(FileResult(source, "ok", available(source), path, "" if was else "downloaded"))
        except SourceError as error:
            results.append(_failure(source, error))
    return results


def write_mirror(
    sources: Iterable[SourceFile], directory: Path, *, progress: Progress | None = None
) -> list[FileResult]:
    """Copy each file, verified, to ``directory``/OWNER/REPO/PATH. Files that are correct there are not changed.

    Files with different content are replaced. Each file is written atomically. Returns one result per file, in order,
    including failures, which do not stop the others.
    Temporary files that killed processes left of these files are deleted.
    """
    return [_mirror_one(source, directory.expanduser().absolute(), progress) for source in sources]


def _check_one(source: SourceFile, directory: Path | None) -> FileResult:
    if directory is None:
        local = find_local(source)
    else:
        target = directory.expanduser().absolute() / source.mirror_path
        local = ("mirror", target) if target.is_file() else None
    if local is None:
        return FileResult(source, "missing", detail="not there" if directory else "in no mirror and not in the cache")
    where, path = local
    try:
        wrong = find_mismatch(path, source)
    except OSError as error:
        return FileResult(source, "failed", where, path, f"cannot be read: {error}")
    if wrong is not None:
        return FileResult(source, "damaged", where, path, f"{wrong}. {damage_advice(source, where)}.")
    return FileResult(source, "ok", where, path)


def _mirror_one(source: SourceFile, directory: Path, progress: Progress | None) -> FileResult:
    target = directory / source.mirror_path
    sweep(target.parent, glob.escape(target.name))
    try:
        there = target.is_file()
        if there and find_mismatch(target, source) is None:
            return FileResult(source, "ok", "mirror", target, "was there")
        # This folder may be in QABENCH_MIRROR, where its wrong file would be found first, so the folder is ignored.
        _copy(local_path(source, progress=progress, ignore_mirror=directory), target)
    except SourceError as error:
        return _failure(source, error)
    except (OSError, QabenchError) as error:
        return FileResult(source, "failed", detail=str(error))
    return FileResult(source, "ok", "mirror", target, "replaced" if there else "written")


def _copy(path: Path, target: Path) -> None:
    with replacing(target) as copy, path.open("rb") as original:
        shutil.copyfileobj(original, copy, 1 << 20)


def _failure(source: SourceFile, error: SourceError) -> FileResult:
    if isinstance(error, NotProvided):
        return FileResult(source, "missing", detail=error.reason)
    local = find_local(source)
    where, path = local or (None, None)
    state: State = "damaged" if isinstance(error, DigestMismatch) else "failed"
    return FileResult(source, state, where, path, str(error))
