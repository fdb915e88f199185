"""Checks the integrity of a log file before anything in it is used."""

from __future__ import annotations

import sys
import zipfile
import zlib
from pathlib import Path

from qabench.errors import InputError, MissingExtra

READ_AT_ONCE = 1 << 20
LARGEST_MEMBER = 4 << 30  # bytes, unpacked
# All exceptions that zipfile and the decompressors were seen to raise on damaged archives.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


def check_archive(path: Path) -> None:
    """Compares each member of a ``.eval`` log with its checksum in the archive.

    Inspect's reader does not compare them, so a flipped bit could change an answer or a score. Logs in other formats
    have no checksums.

    Raises:
        InputError: the file cannot be read, or is damaged; the message names the member.
        MissingExtra: the decompressor is not installed (extra ``run``).
    """
    if path.suffix != ".eval":
        return
    _support_zstandard()
    name = "its table of contents"
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename
                if member.file_size > LARGEST_MEMBER:
                    raise zipfile.BadZipFile(f"{member.file_size} bytes")
                with archive.open(member) as content:  # compares the names in both headers
                    while content.read(READ_AT_ONCE):  # compares the checksum at the end
                        pass
    except DAMAGED as error:
        raise damaged_log(path, f"{name}: {error}") from None
    except Exception as error:  # the decompressor raises its own exceptions
        raise damaged_log(path, f"{name}: {type(error).__name__}: {error}") from None


def damaged_log(path: str | Path, detail: str) -> InputError:
    """The error for a log that cannot be read."""
    return InputError(f"{path} is not a log of Inspect AI, or is damaged ({detail}); copy it again")


def _support_zstandard() -> None:
    if sys.version_info >= (3, 14):
        return
    try:
        import zipfile_zstd  # noqa: F401  (adds the compression of Inspect's logs to zipfile)
    except ImportError:
        raise MissingExtra('reading logs of runs needs zipfile-zstd: pip install "qabench[run]"') from None
