"""The cache folder, and atomic writing of files: a reader sees either the old or the new content."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from qabench.errors import InputError, QabenchError

# A temporary file of this age is deleted, because its process must have been killed while writing.
# If the process is known to have ended, the file is deleted at any age.
SECONDS_UNTIL_ABANDONED = 3600.0
# The suffix of a temporary file names the process that writes it, so other processes can tell
# whether that process still runs.
_WRITER = re.compile(r"\.(\d{1,9})-([0-9a-f]{8})-[^.]*")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Provide a temporary file that is renamed to ``path`` when the block ends without an error.

    A device or a pipe, such as /dev/stdout, cannot be replaced, so it is written to directly.

    Raises:
        QabenchError: the file cannot be written (no space, no permission). An existing file is not
            changed.
    """
    try:
        if _is_special(path):
            with path.open("wb") as file:
                yield file
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{path.name}.{os.getpid()}-{_processes()}-"
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=prefix)
        try:
            # Windows renames closed files only.
            with open(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise QabenchError(f"cannot write {path}: {error.strerror or error}") from error


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8. Raises QabenchError as ``replacing`` does."""
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document (see ``write_text``)."""
    write_text(path, json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def check_writable(path: Path, protected: Iterable[str | Path | None] = ()) -> None:
    """Check that a file can be written, before the work that produces its content.

    No folder is created, because it would stay empty if the work fails.

    Args:
        path: the file.
        protected: files that it must not replace, such as the inputs of a command and its other
            outputs. None, "-" (standard input) and names that are not files are ignored.

    Raises:
        QabenchError: the file cannot be written.
        InputError: it is "-", or would replace one of ``protected``.
    """
    # A source can be "-" for standard input, so a file of this name would not be expected.
    if str(path) == "-":
        raise InputError("cannot write a file named -; for standard output, name /dev/stdout")
    if path.is_dir():
        raise QabenchError(f"cannot write {path}: it is a folder")
    if _is_special(path):
        return
    for other in protected:
        if other and Path(other).resolve() == path.resolve():
            raise InputError(f"the output {path} would replace {other}; name another file")
    try:
        folder = path.parent
        while not folder.exists():
            folder = folder.parent
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise QabenchError(f"cannot write {path}: {error.strerror or error}") from error


def _is_special(path: Path) -> bool:
    """Tell whether a path is a device, a pipe or a socket, which must not be replaced by a file."""
    return path.exists() and not path.is_file() and not path.is_dir()


def sweep(folder: Path, pattern: str) -> None:
    """Delete temporary files that killed processes left when writing files like ``pattern``."""
    for path in folder.glob(f".{pattern}.*"):
        # Another process may delete the file first, or the file may belong to another user.
        with suppress(OSError):
            is_old = time.time() - path.stat().st_mtime > SECONDS_UNTIL_ABANDONED
            if is_old or _is_of_dead_process(path):
                path.unlink()


def _is_of_dead_process(path: Path) -> bool:
    """Tell whether the process that wrote a temporary file ran on this machine and has ended."""
    writer = _WRITER.fullmatch(path.suffix)
    # On Windows, the signal below would end the process instead of testing whether it runs.
    if writer is None or writer[2] != _processes() or sys.platform == "win32":
        return False
    try:
        os.kill(int(writer[1]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        # The process belongs to another user.
        return False
    return False


@functools.cache
def _processes() -> str:
    """Return eight hex digits for this machine or container, in which process ids are unique."""
    names = [platform.node()]
    with suppress(OSError):
        names.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def cache_dir() -> Path:
    """Return the cache folder: QABENCH_CACHE, or ``qabench`` in the user's cache folder.

    The path is absolute. The folder is not created. Its content can be downloaded or computed
    again, except for the replies of models, and the list of runs that were started here.
    """
    if named := os.environ.get("QABENCH_CACHE"):
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("qabench")


def run_replies_dir() -> Path:
    """Return the folder in which runs keep the replies of models."""
    return cache_dir() / "run-replies"
