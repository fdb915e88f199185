"""Many files at once: fetch, check, or copy into a mirror folder. One file's failure never loses the rest."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qabench.errors import DigestMismatch, SourceError
from qabench.sources.digest import find_mismatch
from qabench.sources.download import Progress
from qabench.sources.resolve import NotProvided, Where, available, damage_advice, find_local, local_path
from qabench.sources.table import SourceFile

State = Literal["ok", "missing", "damaged", "failed"]


@dataclass(frozen=True)
class FileResult:
    """What became of one file.

    ``state``: "ok" (there and verified), "missing" (nowhere, not downloadable), "damaged" (other content than the
    pinned one) or "failed" (could not be read or written). ``where`` and ``path`` tell the local file, if there is
    one; ``detail`` is a note, the reason of a missing file, or the error's text.
    """

    source: SourceFile
    state: State
    where: Where | None = None
    path: Path | None = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the file is there with the pinned content."""
        return self.state == "ok"


def check(sources: Iterable[SourceFile], *, directory: Path | None = None) -> list[FileResult]:
    """Verify, with no network, what is in the mirrors and the cache, or in the mirror folder ``directory`` alone."""
    return [_check_one(source, directory) for source in sources]


def fetch(sources: Iterable[SourceFile], *, progress: Progress | None = None) -> list[FileResult]:
    """Make each file available here (see local_path), going on past failures. One result a file, in order."""
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
    """Copy each file, verified, to ``directory``/OWNER/REPO/PATH; what is already right there is left as it is.

    A file with other content is replaced. Each file is written atomically. One result a file, in order; failures are
    among the results and do not stop the rest.
    """
    return [_mirror_one(source, directory.expanduser().absolute(), progress) for source in sources]


def _check_one(source: SourceFile, directory: Path | None) -> FileResult:
    if directory is None:
        found = find_local(source)
    else:
        target = directory.expanduser().absolute() / source.mirror_path
        found = ("mirror", target) if target.is_file() else None
    if found is None:
        return FileResult(source, "missing", detail="not there" if directory else "in no mirror and not in the cache")
    where, path = found
    try:
        wrong = find_mismatch(path, source)
    except OSError as error:
        return FileResult(source, "failed", where, path, f"cannot be read: {error}")
    if wrong is not None:
        return FileResult(source, "damaged", where, path, f"{wrong}. {damage_advice(source, where)}.")
    return FileResult(source, "ok", where, path)


def _mirror_one(source: SourceFile, directory: Path, progress: Progress | None) -> FileResult:
    target = directory / source.mirror_path
    try:
        there = target.is_file()
        if there and find_mismatch(target, source) is None:
            return FileResult(source, "ok", "mirror", target, "was there")
        # A wrong file in the very folder that is being mended must not stand in the way of its replacement.
        _copy(local_path(source, progress=progress, ignore_mirror=directory), target)
    except SourceError as error:
        return _failure(source, error)
    except OSError as error:
        return FileResult(source, "failed", detail=f"{target} cannot be written: {error}")
    return FileResult(source, "ok", "mirror", target, "replaced" if there else "written")


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as copy, path.open("rb") as original:
            shutil.copyfileobj(original, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
        temporary.chmod(0o644)  # mkstemp's 0600 would keep others from a shared mirror
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _failure(source: SourceFile, error: SourceError) -> FileResult:
    if isinstance(error, NotProvided):
        return FileResult(source, "missing", detail=error.reason)
    found = find_local(source)
    where, path = found or (None, None)
    state: State = "damaged" if isinstance(error, DigestMismatch) else "failed"
    return FileResult(source, state, where, path, str(error))
