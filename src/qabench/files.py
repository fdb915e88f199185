"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from qabench.errors import QabenchError


def write_text(path: Path, text: str) -> None:
    """Writes ``text`` as UTF-8; the file appears whole or not at all. Folders are made as needed.

    Raises:
        QabenchError: it cannot be written (no space, no permission); what was there stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(text.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                os.unlink(file.name)
                raise
        os.chmod(file.name, 0o666 & ~_umask())
        os.replace(file.name, path)
    except OSError as error:
        raise QabenchError(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, document: Any) -> None:
    """Writes a JSON document; see ``write_text``."""
    write_text(path, json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def check_writable(path: Path) -> None:
    """Checks that a file can be written, before the work whose result it is to hold.

    Raises:
        QabenchError: it is a folder, or its folder cannot be written to.
    """
    if path.is_dir():
        raise QabenchError(f"cannot write {path}: it is a folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise QabenchError(f"cannot write {path}: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
