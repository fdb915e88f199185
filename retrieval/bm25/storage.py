"""One file of arrays with a header, written whole or not at all, read by memory mapping.

A file is: eight bytes of magic and version, the header's length and checksum (8 bytes each), the header in JSON, the
arrays, each at a multiple of 64 bytes. The header has each array's type, length, place and checksum.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from qabench.errors import InputError, QabenchError
from qabench.retrieval.bm25.postings import Array

MAGIC = b"QABBM25"
VERSION = 1
START = len(MAGIC) + 1 + 16
ALIGNMENT = 64


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Writes the file, through a temporary one beside it that then takes its name: a reader sees the old or the new.

    Raises:
        QabenchError: it cannot be written (no space, no permission); what was there stays.
    """
    table = {}
    place = 0
    for name, array in arrays.items():
        checksum = zlib.crc32(_bytes(array))
        table[name] = [array.dtype.str, len(array), place, checksum]
        place += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    text = json.dumps({**header, "arrays": table, "bytes": place}, ensure_ascii=False).encode()
    text += b" " * (-(START + len(text)) % ALIGNMENT)
    with _replacing(path) as file:
        file.write(MAGIC + bytes([VERSION]))
        file.write(len(text).to_bytes(8, "little") + zlib.crc32(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            file.write(_bytes(array))
            file.write(b"\0" * (-array.nbytes % ALIGNMENT))


def read(path: Path, large: frozenset[str], memory_map: bool, verify: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays, read-only.

    Args:
        path: the file.
        large: arrays whose content is checked only with ``verify``; all others and the header always are.
        memory_map: leave the arrays on the disk until they are used.
        verify: read and check everything.

    Raises:
        InputError: no such file, not an index, of another version, cut short, or changed.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data: Any = b""
            if size:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if memory_map else file.read()
    except OSError as error:
        raise InputError(f"cannot read the index {path}: {error.strerror or error}") from None
    header, start = _header(path, data)
    if size != start + header["bytes"]:
        raise _damaged(path, f"{size} bytes where {start + header['bytes']} were written")
    arrays = {}
    for name, (dtype, length, place, checksum) in header.pop("arrays").items():
        array = np.frombuffer(data, dtype=dtype, count=length, offset=start + place)
        if (verify or name not in large) and zlib.crc32(_bytes(array)) != checksum:
            raise _damaged(path, f"the array {name!r} has changed")
        arrays[name] = array
    return header, arrays


def _header(path: Path, data: Any) -> tuple[dict[str, Any], int]:
    begin = bytes(data[:START])
    if begin[: len(MAGIC)] != MAGIC[: len(begin)] or not begin:
        raise InputError(f"{path} is no BM25 index of qabench")
    if len(begin) < START:
        raise _damaged(path, f"{len(begin)} bytes are left of it")
    version = begin[len(MAGIC)]
    if version != VERSION:
        raise InputError(f"the index {path} has format {version}; this qabench reads {VERSION}. Build it again")
    length = int.from_bytes(begin[-16:-8], "little")
    text = bytes(data[START : START + length])
    if len(text) != length or zlib.crc32(text) != int.from_bytes(begin[-8:], "little"):
        raise _damaged(path, "its header is not what was written")
    header: dict[str, Any] = json.loads(text)
    return header, START + length


def _damaged(path: Path, detail: str) -> InputError:
    return InputError(f"the index {path} is damaged ({detail}); build it again or copy it anew")


def _bytes(array: Array) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B") if len(array) else memoryview(b"")


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(file.name, 0o666 & ~mask)
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise QabenchError(f"cannot write {path}: {error.strerror or error}") from error
