"""A built repository as a folder: its manifest, and how it replaces an older build and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qabench.errors import InputError, QabenchError

MANIFEST = "qabench.json"
FORMAT = "qabench dataset repository"


def digests(folder: Path, *, manifest: bool = False) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of every file below ``folder``, by relative path, sorted; of the manifest only if asked for."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (manifest or name != MANIFEST) and (path.is_symlink() or not path.is_dir()):
            with path.open("rb") as file:
                found[name] = {
                    "size": path.stat().st_size,
                    "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
                }
    return found


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a repository that ``qabench build`` wrote.

    Raises:
        InputError: there is no manifest, or it cannot be read.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        manifest = None
    known = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    if known and all(isinstance(manifest.get(key), dict) for key in ("configs", "files")):
        return dict(manifest)
    raise InputError(
        f"{folder} is not a repository written by `qabench build`: {path} does not exist or is not a manifest"
    )


def check_replaceable(folder: Path) -> dict[str, Any] | None:
    """The manifest of the build at ``folder``; None if nothing is there.

    Raises:
        InputError: qabench did not write what is there, or it was changed since.
    """
    if not os.path.lexists(folder):
        return None
    advice = "It is left as it is; move it away, or build into another folder"
    try:
        if folder.is_symlink() or not folder.is_dir():
            raise InputError(f"{folder} is not a folder")
        manifest = read_manifest(folder)
        written = manifest["files"]
        other = [name for name, digest in digests(folder).items() if written.get(name) != digest]
    except InputError as error:
        raise InputError(f"{error}. {advice}.") from None
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error}. {advice}.") from error
    if other:
        names = ", ".join(other[:3]) + (f" and {len(other) - 3} more" if len(other) > 3 else "")
        raise InputError(f"{folder} has files that qabench did not write: {names}. {advice}.")
    return manifest


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """An empty folder next to ``folder`` that replaces it when the block ends, and is removed if the block fails.

    ``folder`` is whole at any time, or is not there: what a killed build left is put right or removed by the next one.
    One build at a time; another one waits.

    Raises:
        InputError: the existing folder may not be replaced; see ``check_replaceable``.
        QabenchError: the folder cannot be written.
    """
    from filelock import FileLock

    new, old = (folder.with_name(f".{folder.name}.qabench-{state}") for state in ("new", "old"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(".qabench-build.lock")):
            recover(folder)
            new.mkdir()
            try:
                yield new
                check_replaceable(folder)
                if folder.exists():
                    os.rename(folder, old)
                os.rename(new, folder)
            finally:
                recover(folder)
    except OSError as error:
        raise QabenchError(f"cannot write {folder}: {error}") from error


def recover(folder: Path) -> None:
    """Removes what an interrupted build of ``folder`` left, and restores the build that it was about to replace."""
    new, old = (folder.with_name(f".{folder.name}.qabench-{state}") for state in ("new", "old"))
    if old.is_dir() and not folder.exists():
        os.rename(old, folder)
    for left in (new, old):
        if left.is_dir():
            shutil.rmtree(left)
