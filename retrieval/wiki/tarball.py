"""Imports a tarball of cached pages into the cache, without trusting its content."""

from __future__ import annotations

import lzma
import re
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from qabench.errors import InputError, QabenchError
from qabench.retrieval.wiki.cache import WikiCache

PAGE = re.compile(r"([1-9][0-9]{0,17})-dated\.md", re.ASCII)
LARGEST_PAGE = 64 << 20
# Includes the exceptions that invalid numbers in headers cause.
DAMAGED = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError, OverflowError)


@dataclass
class Imported:
    """Counts of a tarball's members.

    Attributes:
        written: pages written to the cache.
        present: pages that were in the cache already.
        blank: pages without text, which are not written. The official package creates them for pages that it cannot
            download.
        ignored: folders and files that are not pages.
        refused: (name, reason) of suspicious members, which are not written.
    """

    written: int = 0
    present: int = 0
    blank: int = 0
    ignored: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)


def import_cache(
    tarball: Path, cache: WikiCache | None = None, progress: Callable[[int, int], None] | None = None
) -> Imported:
    """Import the pages of a tarball (plain, gzip, bzip2 or xz) into the folder of a cache.

    Only regular files with the name ``{pageid}-dated.md`` are imported, from any folder of the tarball. Each is written
    directly to the cache's folder; the path of a member is never used. Links, devices, absolute paths, paths with "..",
    pages above 64 MiB and pages that are not UTF-8 are refused. Other files are ignored. Pages that are in the folder
    already are not changed, so an interrupted import can be continued.

    Args:
        tarball: the file.
        cache: by default ``WikiCache()``.
        progress: called with the number of bytes of the tarball that were read, and its size.

    Raises:
        InputError: the file does not exist or is not a tarball.
        QabenchError: the tarball is truncated or damaged (the pages read until then are kept), or a page cannot be
            written.
    """
    cache = WikiCache(None if cache is None else cache.folder, others=[])
    cache.sweep()
    done = Imported()
    try:
        size = tarball.stat().st_size
        file = tarball.open("rb")
    except OSError as error:
        raise InputError(f"cannot read the tarball {tarball}: {error.strerror or error}") from error
    with file:
        try:
            with tarfile.open(fileobj=file) as tar:
                for member in tar:
                    tar.members = []  # type: ignore[attr-defined]  # otherwise all headers stay in memory
                    if member.size < 0:  # some versions of tarfile would read the same headers again and again
                        raise tarfile.HeaderError(f"{member.name} has a negative size")
                    _take(tar, member, cache, done)
                    if progress:
                        progress(file.tell(), size)
        except DAMAGED as error:
            if isinstance(error, tarfile.ReadError) and done == Imported():
                message = f"{tarball} is not a tarball (plain, gzip, bzip2 or xz), or its beginning is damaged"
                raise InputError(message) from error
            raise QabenchError(
                f"{tarball} is damaged or ends too early ({error}) after {done.written + done.present} pages, which "
                "are kept. Download the tarball again and repeat the import: it continues where it stopped."
            ) from error
    return done


def _take(tar: tarfile.TarFile, member: tarfile.TarInfo, cache: WikiCache, done: Imported) -> None:
    path = PurePosixPath(member.name)
    name = PAGE.fullmatch(path.name)
    if member.isdir() or (member.isreg() and name is None):
        done.ignored += 1
        return
    reason = _why_refused(member, path)
    if reason is None and name is not None:
        pageid = int(name[1])
        if cache.read(pageid) is not None:
            done.present += 1
            return
        reason = _write(tar, member, cache, pageid, done)
    if reason:
        done.refused.append((member.name.encode("utf-8", "backslashreplace").decode(), reason))


def _why_refused(member: tarfile.TarInfo, path: PurePosixPath) -> str | None:
    if not member.isreg():
        return "a link" if member.issym() or member.islnk() else "not a regular file"
    if path.is_absolute() or ".." in path.parts:
        return "a path that leads out of its folder"
    if member.size > LARGEST_PAGE:
        return f"{member.size} bytes; a page has at most {LARGEST_PAGE}"
    return None


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, cache: WikiCache, pageid: int, done: Imported) -> str | None:
    content = tar.extractfile(member)
    data = content.read() if content else b""
    if len(data) != member.size:
        raise EOFError(f"{member.name} has {len(data)} of {member.size} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8 ({error.reason} at byte {error.start})"
    if "\0" in text:
        return "damaged: NUL characters"
    if not text.strip():
        done.blank += 1
        return None
    cache.write(pageid, text)
    done.written += 1
    return None
