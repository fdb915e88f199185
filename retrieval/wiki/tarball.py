"""Imports a tarball of cached pages into the cache, without trusting its content."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from qabench.errors import InputError, QabenchError, unreadable
from qabench.evaluation.scoring import Progress
from qabench.retrieval.wiki.cache import WikiCache

PAGE = re.compile(r"([1-9][0-9]{0,17})-dated\.md", re.ASCII)
LARGEST_PAGE = 64 << 20
LARGEST_HEADER = 64 << 10  # a long name, or the records of a pax header
MAX_HEADERS = 2_000_000
MAX_REFUSED = 10_000
MAX_BYTES = 128 << 30  # decompressed
CHUNK = 1 << 20
COMPRESSIONS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
# Includes the exceptions that invalid numbers in headers cause.
DAMAGED = (
    tarfile.TarError,
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    OverflowError,
    MemoryError,
)
END = bytes(tarfile.BLOCKSIZE)


@dataclass
class Imported:
    """Counts of a tarball's members.

    Attributes:
        written: pages written to the cache.
        present: pages that were in the cache already.
        blank: pages without text, which are not written. The official package creates them for
            pages that it cannot download.
        ignored: folders and files that are not pages.
        refused: (name, reason) of suspicious members, which are not written.
        verified: whether the tarball has checksums of its content, which an uncompressed one does
            not.
    """

    written: int = 0
    present: int = 0
    blank: int = 0
    ignored: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    verified: bool = True


def import_cache(
    tarball: Path,
    cache: WikiCache | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Import the pages of a tarball (plain, gzip, bzip2 or xz) into the folder of a cache.

    The tarball is read to its end twice: first all headers and checksums are verified, then the
    pages are written. Only regular files with the name ``{pageid}-dated.md`` are imported, from any
    folder of the tarball. Each is written directly to the cache's folder. The path of a member is
    never used. Links, devices, absolute paths, paths with "..", pages above 64 MiB and pages that
    are not UTF-8 are refused. Other files are ignored. Pages that are in the folder already are not
    changed, so an interrupted import can be continued.

    Args:
        tarball: the file.
        cache: by default ``WikiCache()``.
        progress: called with the number of bytes of the tarball that were read in both passes, and
            twice its size.

    Raises:
        InputError: the file does not exist or is not a tarball.
        QabenchError: the tarball is truncated, damaged or above the limits, and nothing was
            written, or a page cannot be written.
    """
    cache = WikiCache(None if cache is None else cache.folder, shared=[])
    cache.sweep()
    done = Imported()
    try:
        size = tarball.stat().st_size
        file = tarball.open("rb")
    except OSError as error:
        raise unreadable(f"the tarball {tarball}", error) from error
    with file:
        for writes in (False, True):
            for member, data in _checked_members(tarball, file, done):
                if writes:
                    _take(member, data, cache, done)
                if progress:
                    progress(file.tell() + size * writes, 2 * size)
    return done


def _checked_members(
    tarball: Path, file: IO[bytes], done: Imported
) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield the members from the beginning of the file.

    Raises InputError or QabenchError if it is damaged.
    """
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    opening = next(
        (function for magic, function in COMPRESSIONS.items() if start.startswith(magic)), None
    )
    done.verified = opening is not None
    count = 0
    members = _members(opening(file) if opening else file)
    while True:
        try:
            member = next(members, None)
        except DAMAGED as error:
            if count == 0 and not isinstance(error, _TooLarge):
                message = f"{tarball} is not a tarball (plain, gzip, bzip2 or xz), or its beginning is damaged"
                raise InputError(message) from error
            raise QabenchError(
                f"{tarball} is damaged or ends too early ({error or type(error).__name__}) after {count} files. "
                "Nothing was written. Download the tarball again."
            ) from error
        if member is None:
            return
        count += 1
        yield member


class _TooLarge(tarfile.TarError):
    """The tarball is above a limit."""


def _members(stream: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield each member with its content, which is empty for what is not a page, and read the stream to its end.

    tarfile itself ends without an error at a damaged header, and allocates what a header declares.
    """
    total = count = 0
    records: dict[str, str] = {}
    while (block := _read(stream, tarfile.BLOCKSIZE)) != END:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        count += 1
        if count > MAX_HEADERS:
            raise _TooLarge(f"more than {MAX_HEADERS} headers")
        if member.type in (
            tarfile.XHDTYPE,
            tarfile.XGLTYPE,
            tarfile.GNUTYPE_LONGNAME,
            tarfile.GNUTYPE_LONGLINK,
        ):
            if member.size > LARGEST_HEADER:
                raise _TooLarge(f"a header of {member.size} bytes; the limit is {LARGEST_HEADER}")
            content = _content(stream, member.size, keep=True)
            if member.type == tarfile.XHDTYPE:
                records |= _pax_records(content)
            elif member.type == tarfile.GNUTYPE_LONGNAME:
                records["path"] = content.rstrip(b"\0").decode("utf-8", "surrogateescape")
            continue
        member.name = records.get("path", member.name)
        member.size = int(records.get("size", member.size))
        records = {}
        total += member.size
        if member.size < 0 or total > MAX_BYTES:
            raise _TooLarge(f"files of {total} bytes; the limit is {MAX_BYTES}")
        has_content = member.isreg() or member.type not in tarfile.SUPPORTED_TYPES
        keep = member.isreg() and _page_id(member) is not None and member.size <= LARGEST_PAGE
        yield member, _content(stream, member.size if has_content else 0, keep)
    if _read(stream, tarfile.BLOCKSIZE) != END:
        raise EOFError("the end of the archive is damaged")
    while chunk := stream.read(CHUNK):
        total += len(chunk)
        if chunk.strip(b"\0") or total > MAX_BYTES:
            raise EOFError("there is something after the end of the archive")


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("unexpected end of data")
    return data


def _content(stream: IO[bytes], size: int, keep: bool) -> bytes:
    """Read a member's content and the padding of its last block, and return the content if it is to be kept."""
    if keep:
        data = _read(stream, size)
    else:
        data = b""
        for start in range(0, size, CHUNK):
            _read(stream, min(CHUNK, size - start))
    _read(stream, -size % tarfile.BLOCKSIZE)
    return data


def _pax_records(content: bytes) -> dict[str, str]:
    """Return the records "LENGTH KEY=VALUE\\n" of a pax header. Raises ValueError."""
    records = {}
    start = 0
    while start < len(content):
        length, _, _ = content[start : start + 8].partition(b" ")
        end = start + int(length)
        key, equals, value = content[start + len(length) + 1 : end - 1].partition(b"=")
        if not equals or content[end - 1 : end] != b"\n" or key.startswith(b"GNU.sparse"):
            raise ValueError("a pax header is damaged, or describes a sparse file")
        records[key.decode()] = value.decode("utf-8", "surrogateescape")
        start = end
    return records


def _page_id(member: tarfile.TarInfo) -> int | None:
    name = PAGE.fullmatch(PurePosixPath(member.name).name)
    return int(name[1]) if name else None


def _take(member: tarfile.TarInfo, data: bytes, cache: WikiCache, done: Imported) -> None:
    pageid = _page_id(member)
    if member.isdir() or (member.isreg() and pageid is None):
        done.ignored += 1
        return
    reason = _why_refused(member)
    if reason is None and pageid is not None:
        if cache.read(pageid) is not None:
            done.present += 1
            return
        reason = _write(data, cache, pageid, done)
    if reason:
        name = member.name[:200].encode("utf-8", "backslashreplace").decode()
        done.refused.append((name, reason))
        if len(done.refused) > MAX_REFUSED:
            raise QabenchError(
                f"the tarball has more than {MAX_REFUSED} suspicious files; the last is {name}"
            )


def _why_refused(member: tarfile.TarInfo) -> str | None:
    path = PurePosixPath(member.name)
    if not member.isreg():
        return "a link" if member.issym() or member.islnk() else "not a regular file"
    if path.is_absolute() or ".." in path.parts:
        return "a path that leads out of its folder"
    if member.size > LARGEST_PAGE:
        return f"{member.size} bytes; a page has at most {LARGEST_PAGE}"
    return None


def _write(data: bytes, cache: WikiCache, pageid: int, done: Imported) -> str | None:
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
