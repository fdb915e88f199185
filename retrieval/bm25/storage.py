"""One file of arrays with a header: written atomically, read by memory mapping, with checksums of everything.

A file is: eight bytes of magic and version, the header's length and checksum (8 bytes each), the header in JSON, and
the arrays, each at a multiple of 64 bytes. The header has type, length, place and checksum of each array. An array that
grows with the documents has one checksum per block of 16 KiB and one per group of 16 blocks instead, stored as other
arrays, so that a search checks only what it reads: long postings by groups, which takes less time, and the rest by
blocks.
"""

from __future__ import annotations

import glob
import json
import mmap
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from qabench.errors import InputError
from qabench.io.files import replacing, sweep
from qabench.io.limits import json_of
from qabench.retrieval.bm25.arrays import Array

MAGIC = b"QABBM25"
VERSION = 3
START = len(MAGIC) + 1 + 16
ALIGNMENT = 64
BLOCK = 16384  # bytes
GROUP = 16  # blocks
TYPES = ("<i4", "<i8", "<u8", "<f4", "<f8", "|u1")
CHECKSUMS = {"_checksums": BLOCK, "_group_checksums": GROUP * BLOCK}  # of block-wise arrays: suffix, bytes of each


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array], blockwise: Collection[str]) -> None:
    """Writes the file. Temporary files that killed processes left next to it are deleted.

    Args:
        path: the file.
        header: JSON data.
        arrays: one-dimensional arrays by name.
        blockwise: the names of arrays that get a checksum for each block.

    Raises:
        QabenchError: it cannot be written (no space, no permission); an existing file is not changed.
    """
    parts = {name + suffix: checksums(arrays[name], size) for name in blockwise for suffix, size in CHECKSUMS.items()}
    arrays = {**arrays, **parts}
    table = {}
    place = 0
    for name, array in arrays.items():
        checksum = None if name in blockwise else _checksum(as_bytes(array))
        table[name] = [array.dtype.str, len(array), place, checksum]
        place += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    text = json.dumps({**header, "arrays": table, "bytes": place}, ensure_ascii=False).encode()
    text += b" " * (-(START + len(text)) % ALIGNMENT)
    sweep(path.parent, glob.escape(path.name))
    with replacing(path) as file:
        file.write(MAGIC + bytes([VERSION]))
        file.write(len(text).to_bytes(8, "little") + _checksum(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            file.write(as_bytes(array))
            file.write(b"\0" * (-array.nbytes % ALIGNMENT))


class StoredArrays:
    """The header and the arrays of a file, read-only.

    Everything except the block-wise arrays is checked when the file is opened.

    Args:
        path: the file.
        memory_map: whether arrays are read from the disk when they are used.

    Raises:
        InputError: the file does not exist, is not an index, has another version, or is truncated or damaged.
    """

    def __init__(self, path: Path, memory_map: bool) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size and memory_map:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                data = self._map or file.read()
        except OSError as error:
            raise InputError(f"cannot read the index {path}: {error.strerror or error}") from None
        self._size = size
        self.header, start = self._read_header(data)
        table, length = self.header.pop("arrays", None), self.header.pop("bytes", None)
        if not isinstance(table, dict) or not _is_count(length):
            raise self.damaged("its header does not have a table of arrays")
        if size != start + length:
            raise self.damaged(f"{size} bytes instead of {start + length}")
        self._arrays = {name: self._read_array(name, entry, data, start) for name, entry in table.items()}

    def array(self, name: str, *types: str) -> Array:
        """The array ``name``. Raises InputError if it is missing or does not have one of the types."""
        array = self._arrays.get(name)
        if array is None or array.dtype.str not in types:
            raise self.damaged(f"it has no array {name!r} of the type {' or '.join(types)}")
        return array

    def blocks(self, name: str) -> Blocks:
        """The checks of a block-wise array."""
        return Blocks(self, name, self._arrays[name], *(self.array(name + suffix, "<u8") for suffix in CHECKSUMS))

    def check_size(self) -> None:
        """Raises InputError if the mapped file was truncated: reading beyond its end would kill the process."""
        if self._map is not None and self._map.size() < self._size:
            raise self.damaged("it was truncated after it was opened")

    def damaged(self, detail: str) -> InputError:
        """The error for a damaged file."""
        return InputError(f"the index {self.path} is damaged ({detail}); build it again or copy it again")

    def _read_header(self, data: Any) -> tuple[dict[str, Any], int]:
        begin = bytes(data[:START])
        if begin[: len(MAGIC)] != MAGIC[: len(begin)] or not begin:
            raise InputError(f"{self.path} is not a BM25 index of qabench")
        if len(begin) < START:
            raise self.damaged(f"it has only {len(begin)} bytes")
        if (version := begin[len(MAGIC)]) != VERSION:
            raise InputError(
                f"the index {self.path} has format {version}; this qabench reads {VERSION}. Build it again"
            )
        length = int.from_bytes(begin[-16:-8], "little")
        text = bytes(data[START : START + length])
        if len(text) != length or _checksum(text) != int.from_bytes(begin[-8:], "little"):
            raise self.damaged("its header has changed")
        try:
            header = json_of(text)
        except ValueError:
            header = None
        if not isinstance(header, dict):
            raise self.damaged("its header is not a JSON object")
        return header, START + length

    def _read_array(self, name: str, entry: Any, data: Any, start: int) -> Array:
        if (
            not isinstance(entry, list)
            or len(entry) != 4
            or entry[0] not in TYPES
            or not all(map(_is_count, entry[1:3]))
        ):
            raise self.damaged(f"its header does not describe the array {name!r}")
        dtype, length, place, checksum = np.dtype(entry[0]), entry[1], entry[2], entry[3]
        if start + place + length * dtype.itemsize > self._size or place % ALIGNMENT:
            raise self.damaged(f"the array {name!r} is not inside the file")
        array: Array = np.frombuffer(data, dtype, length, start + place) if length else np.empty(0, dtype)
        if checksum is not None and self._has_changed(array, checksum):
            raise self.damaged(f"the array {name!r} has changed")
        return array

    @staticmethod
    def _has_changed(array: Array, checksum: Any) -> bool:
        return bool(_checksum(as_bytes(array)) != checksum)


class Blocks:
    """Checks blocks of an array, each once, when they are first read."""

    def __init__(self, stored: StoredArrays, name: str, array: Array, blocks: Array, groups: Array) -> None:
        self._stored = stored
        self._name = name
        self._width = array.dtype.itemsize
        self._bytes = as_bytes(array)
        # The views give Python's integers, faster than arrays of numpy.
        self._blocks, self._groups = as_bytes(blocks).cast("Q"), as_bytes(groups).cast("Q")
        self._open = bytearray(b"\1") * -(-len(self._bytes) // BLOCK)  # 1: not checked yet
        if len(blocks) != len(self._open) or len(groups) != -(-len(self._open) // GROUP):
            raise stored.damaged(f"the array {name!r} has {len(blocks)} and {len(groups)} checksums")

    def check(self, start: int, end: int) -> None:
        """Checks the elements from ``start`` to before ``end``. Raises InputError if a block of theirs has changed."""
        block, last = start * self._width // BLOCK, -(-end * self._width // BLOCK)
        while (block := self._open.find(1, block, last)) >= 0:
            if block % GROUP or block + GROUP > last:
                size, expected = 1, self._blocks[block]
            else:
                size, expected = GROUP, self._groups[block // GROUP]
            if _checksum(self._bytes[block * BLOCK : (block + size) * BLOCK]) != expected:
                raise self._stored.damaged(f"the array {self._name!r} has changed")
            self._open[block : block + size] = bytes(size)
            block += size


def as_bytes(array: Array) -> memoryview:
    """The bytes of a one-dimensional array, without a copy if it is contiguous."""
    return np.ascontiguousarray(array).data.cast("B") if len(array) else memoryview(b"")


def checksums(array: Array, size: int) -> Array:
    """The checksum of each ``size`` bytes of an array."""
    data = as_bytes(array)
    return np.array([_checksum(data[place : place + size]) for place in range(0, len(data), size)], dtype=np.uint64)


_checksum = xxhash.xxh3_64_intdigest


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62
