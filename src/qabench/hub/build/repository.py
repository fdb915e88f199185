"""The folder of a built repository: its manifest, and the replacement of an older build."""

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
    """Size and SHA-256 of all files below ``folder``, by relative path, sorted; ``manifest`` includes the manifest."""
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
        InputError: the manifest does not exist or cannot be read.
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
    """The manifest of the build at ``folder``; None if the folder is empty or does not exist.

    Raises:
        InputError: the folder was not written by qabench, or was changed since.
    """
    if not os.path.lexists(folder):
        return None
    advice = "It was not changed; move it away, or build into another folder"
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

    ``folder`` is complete or absent at all times: the next build repairs or removes what a killed build left. Only one
    build runs at a time; others wait.

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
    """Removes the files of an interrupted build of ``folder``, and restores the build that it was replacing."""
    new, old = (folder.with_name(f".{folder.name}.qabench-{state}") for state in ("new", "old"))
    if old.is_dir() and not folder.exists():
        os.rename(old, folder)
    for left in (new, old):
        if left.is_dir():
            shutil.rmtree(left)
