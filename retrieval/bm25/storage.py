"""Save an index to one file, and open it without trusting the file.

A file is: eight bytes of magic and version, the header's length and checksum (8 bytes each), the header in JSON, and
the arrays, each at a multiple of 64 bytes. The header has type, length, place and checksum of each array. The postings
have one checksum per 64 KiB instead, stored as other arrays, so that a search checks only what it reads.
"""

from __future__ import annotations

import glob
import json
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from qabench.errors import InputError
from qabench.io.files import replacing, sweep
from qabench.io.limits import json_of
from qabench.retrieval.bm25.building import MOST_DOCUMENTS, Content, Origin, check_belongs
from qabench.retrieval.bm25.exhaustive import Array, Postings
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.reading import Filters
from qabench.retrieval.bm25.scorers import InvertedScorer
from qabench.retrieval.bm25.tokenizers import Tokenizer, from_spec, name_of

MAGIC = b"QABBM25"
VERSION = 4
START = len(MAGIC) + 1 + 16
ALIGNMENT = 64
BLOCK = 1 << 16  # bytes
TYPES = ("<i4", "<i8", "<u8", "<f4", "<f8", "|u1")
POSTINGS = ("documents", "weights")  # the arrays that grow with the collection: a checksum for each block
CHECKSUMS = "_checksums"

_checksum = xxhash.xxh3_64_intdigest


def save(content: Content, path: Path) -> None:
    """Write the content to a file; see ``BM25Index.save``."""
    if not isinstance(content.scorer, InvertedScorer):
        raise InputError("only an index of the backend 'qabench' can be saved")
    name = name_of(content.tokenizer)
    if "<" in name:
        raise InputError(
            f"the tokenizer {name} cannot be saved, because it does not have a name: use a function of a module, or an "
            "object with a name"
        )
    postings = content.scorer.postings
    text, starts, numbers = StoredVocabulary.arrays(content.scorer.vocabulary.items())
    arrays = {
        "starts": postings.starts,
        "base": postings.base,
        "highest": postings.highest,
        "vocabulary_text": text,
        "vocabulary_starts": starts,
        "vocabulary_numbers": numbers,
        **{f"filter_{number}": content.filters.codes[name] for number, name in enumerate(content.origin.filters)},
        "documents": postings.documents,
        "weights": postings.weights,
    }
    header = {
        "parameters": content.parameters.as_dict(),
        "tokenizer": name,
        "tokenizer_spec": getattr(content.tokenizer, "spec", None),
        "filters": content.filters.values,
        "origin": vars(content.origin),
    }
    _write(path, header, arrays)


def load(path: Path, dataset: Any, tokenizer: Tokenizer | None, memory_map: bool, verify: bool) -> Content:
    """Return the content of a file; see ``BM25Index.load``."""
    stored = StoredArrays(path, memory_map)
    try:
        origin = _origin(stored.header["origin"])
        parameters = Parameters.of(**stored.header["parameters"])
        filters = _filters(stored, origin)
        name, spec = stored.header["tokenizer"], stored.header["tokenizer_spec"]
        tokenizer = _tokenizer(path, name, spec, tokenizer)
    except (KeyError, TypeError, AttributeError) as error:
        raise stored.damaged(f"a field of its header is missing or has another type: {error!r:.100}") from None
    postings = _postings(stored, origin.size)
    if verify or not memory_map:
        postings.check_all()
    scorer = InvertedScorer(postings, _vocabulary(stored, len(postings.base)))
    content = Content(parameters, tokenizer, scorer, filters, origin)
    if dataset is not None:
        check_belongs(content, dataset, f"the index {path}")
    return content


def _postings(stored: StoredArrays, size: int) -> StoredPostings:
    starts, base, highest = stored.array("starts", "<i8"), stored.array("base", "<f8"), stored.array("highest", "<f8")
    documents, weights = stored.array("documents", "<i4"), stored.array("weights", "<f8", "<f4")
    if not len(starts) == len(base) + 1 == len(highest) + 1 > 1 or len(documents) != len(weights):
        raise stored.damaged("its arrays are of different lengths")
    _check_starts(stored, starts, len(documents))
    if (np.diff(starts) == 0).any():
        raise stored.damaged("a term without documents")
    checks = Blocks(stored, "documents", documents), Blocks(stored, "weights", weights)
    return StoredPostings(starts, documents, weights, base, highest, size, stored, *checks)


def _vocabulary(stored: StoredArrays, terms: int) -> StoredVocabulary:
    """Return the vocabulary of a file. Raises InputError unless it has ``terms`` terms, with numbers below that."""
    text, starts = stored.array("vocabulary_text", "|u1"), stored.array("vocabulary_starts", "<i8")
    numbers = stored.array("vocabulary_numbers", "<i4")
    if len(starts) != terms + 1 or len(numbers) != terms or numbers.view(np.uint32).max() >= terms:
        raise stored.damaged("its vocabulary does not match its postings")
    _check_starts(stored, starts, len(text))
    return StoredVocabulary(text, starts, numbers)


def _check_starts(stored: StoredArrays, starts: Array, end: int) -> None:
    if starts[0] != 0 or starts[-1] != end or (np.diff(starts) < 0).any():
        raise stored.damaged("its parts are not consecutive")


def _origin(fields: Mapping[str, Any]) -> Origin:
    origin = Origin(**{**fields, "filters": tuple(fields["filters"])})
    _expect(type(origin.size) is int and 0 < origin.size <= MOST_DOCUMENTS, "size")
    _expect(isinstance(origin.digest, str), "digest")
    _expect(origin.columns is None or _are_strings(origin.columns), "columns")
    _expect(_are_strings(list(origin.filters)), "filters")
    _expect(origin.cache_key is None or isinstance(origin.cache_key, str), "cache_key")
    return origin


def _filters(stored: StoredArrays, origin: Origin) -> Filters:
    values = stored.header["filters"]
    codes = {name: stored.array(f"filter_{number}", "<i4") for number, name in enumerate(origin.filters)}
    _expect(isinstance(values, dict) and list(values) == list(codes), "filters")
    for name, column in codes.items():
        _expect(_are_strings(values[name]), "filters")
        if len(column) != origin.size or column.view(np.uint32).max() >= len(values[name]):
            raise stored.damaged(f"the filter {name!r} does not match the documents")
    return Filters(values, codes)


def _tokenizer(path: Path, name: Any, spec: Any, override: Tokenizer | None) -> Tokenizer:
    _expect(isinstance(name, str), "tokenizer")
    if override is None and spec is None:
        raise InputError(f"the index {path} was built with the tokenizer {name}: pass it as tokenizer=")
    tokenizer = from_spec(spec) if override is None else override
    if name_of(tokenizer) != name:
        raise InputError(
            f"the index {path} was built with the tokenizer {name}, but tokenizer= is {name_of(tokenizer)}, which can "
            "return other terms: pass the original tokenizer, or build the index again"
        )
    return tokenizer


def _are_strings(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _expect(fits: bool, field_name: str) -> None:
    if not fits:
        raise TypeError(field_name)


def _write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write the file. Temporary files that killed processes left next to it are deleted.

    Args:
        path: the file.
        header: JSON data.
        arrays: one-dimensional arrays by name.

    Raises:
        QabenchError: it cannot be written (no space, no permission); an existing file is not changed.
    """
    arrays = {**arrays, **{name + CHECKSUMS: checksums(arrays[name]) for name in POSTINGS}}
    table = {}
    place = 0
    for name, array in arrays.items():
        checksum = None if name in POSTINGS else _checksum(_as_bytes(array))
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
            file.write(_as_bytes(array))
            file.write(b"\0" * (-array.nbytes % ALIGNMENT))


class StoredArrays:
    """The header and the arrays of a file, read-only.

    Everything except the postings is checked when the file is opened.

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
        """Return the array ``name``. Raises InputError if it is missing or does not have one of the types."""
        array = self._arrays.get(name)
        if array is None or array.dtype.str not in types:
            raise self.damaged(f"it has no array {name!r} of the type {' or '.join(types)}")
        return array

    def check_size(self) -> None:
        """Raise InputError if the mapped file was truncated: reading beyond its end would kill the process."""
        if self._map is not None and self._map.size() < self._size:
            raise self.damaged("it was truncated after it was opened")

    def damaged(self, detail: str) -> InputError:
        """Return the error for a damaged file."""
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
        if name not in POSTINGS and _checksum(_as_bytes(array)) != checksum:
            raise self.damaged(f"the array {name!r} has changed")
        return array


class Blocks:
    """Checks blocks of an array, each once, when they are first read."""

    def __init__(self, stored: StoredArrays, name: str, array: Array) -> None:
        self._stored = stored
        self._name = name
        self._width = array.dtype.itemsize
        self._bytes = _as_bytes(array)
        self._checksums = stored.array(name + CHECKSUMS, "<u8").tolist()
        self._open = bytearray(b"\1") * -(-len(self._bytes) // BLOCK)  # 1: not checked yet
        if len(self._checksums) != len(self._open):
            raise stored.damaged(f"the array {name!r} has {len(self._checksums)} checksums")

    def check(self, start: int, end: int) -> None:
        """Check the elements from ``start`` to before ``end``. Raises InputError if a block of theirs has changed."""
        block, last = start * self._width // BLOCK, -(-end * self._width // BLOCK)
        while (block := self._open.find(1, block, last)) >= 0:
            if _checksum(self._bytes[block * BLOCK : (block + 1) * BLOCK]) != self._checksums[block]:
                raise self._stored.damaged(f"the array {self._name!r} has changed")
            self._open[block] = 0


def _as_bytes(array: Array) -> memoryview:
    """Return the bytes of a one-dimensional array, without a copy if it is contiguous."""
    return np.ascontiguousarray(array).data.cast("B") if len(array) else memoryview(b"")


def checksums(array: Array) -> Array:
    """Return the checksum of each 64 KiB of an array."""
    data = _as_bytes(array)
    return np.array([_checksum(data[place : place + BLOCK]) for place in range(0, len(data), BLOCK)], dtype=np.uint64)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


@dataclass(frozen=True, slots=True)
class StoredPostings(Postings):
    """Postings in a file. The blocks that a search reads are checked when they are first read."""

    stored: StoredArrays
    document_blocks: Blocks
    weight_blocks: Blocks
    checked: set[int] = field(default_factory=set)

    def check_source(self) -> None:
        """Raise InputError if the file was truncated."""
        self.stored.check_size()

    def check(self, terms: Sequence[int]) -> None:
        """Raise InputError if the postings of a term have changed."""
        for term in terms:
            if term not in self.checked:
                self._check(int(self.starts[term]), int(self.starts[term + 1]), np.empty(0, dtype=np.int64))
                self.checked.add(term)

    def check_all(self) -> None:
        """Check the postings of all terms. Raises InputError if any have changed."""
        self._check(0, len(self.documents), self.starts[1:-1] - 1)

    def _check(self, start: int, end: int, breaks: Array) -> None:
        """Check a range of postings; positions may descend only after ``breaks``."""
        self.document_blocks.check(start, end)
        self.weight_blocks.check(start, end)
        ascending = self.documents[start + 1 : end] > self.documents[start : end - 1]
        ascending[breaks] = True
        if not ascending.all():
            raise self.stored.damaged("positions are not in ascending order")
        # As unsigned numbers, positions below 0 are too large as well.
        if end > start and self.documents[start:end].view(np.uint32).max() >= self.size:
            raise self.stored.damaged("a position beyond the last document")


class StoredVocabulary:
    """Terms in arrays: their UTF-8 in ascending order, the start of each, and the number of each.

    Terms that were looked up are cached.
    """

    def __init__(self, text: Array, starts: Array, numbers: Array) -> None:
        self._text = text.data
        self._starts = starts
        self._numbers = numbers
        self._looked_up: dict[str, int] = {}

    @staticmethod
    def arrays(vocabulary: Iterable[tuple[str, int]]) -> tuple[Array, Array, Array]:
        """Return the arrays of a vocabulary's terms and numbers."""
        terms = sorted((term.encode("utf-8", "surrogatepass"), number) for term, number in vocabulary)
        lengths = np.fromiter((len(term) for term, _ in terms), dtype=np.int64, count=len(terms))
        text = np.frombuffer(b"".join(term for term, _ in terms), dtype=np.uint8)
        numbers = np.fromiter((number for _, number in terms), dtype=np.int32, count=len(terms))
        return text, np.concatenate(([0], np.cumsum(lengths))), numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: int) -> bytes:
        return bytes(self._text[self._starts[place] : self._starts[place + 1]])

    def get(self, term: str) -> int | None:
        """Return the number of a term, or None if no document contains it."""
        number = self._looked_up.get(term)
        if number is None:
            encoded = term.encode("utf-8", "surrogatepass")
            place = bisect_left(self, encoded)
            if place == len(self) or self[place] != encoded:
                return None
            number = self._looked_up[term] = int(self._numbers[place])
        return number

    def items(self) -> list[tuple[str, int]]:
        """Return all terms and their numbers. Raises InputError if a term is not UTF-8, as in a damaged file."""
        try:
            return [(self[place].decode("utf-8", "surrogatepass"), int(n)) for place, n in enumerate(self._numbers)]
        except UnicodeDecodeError as error:
            raise InputError(f"the vocabulary of the index is damaged ({error.reason}); build it again") from None
