"""Save an index to one file, and open it without trusting the file.

A file consists of 8 bytes of magic and version, a checksum of everything after it (8 bytes), the
length of the header (8 bytes), the header in JSON, and the arrays, each at a multiple of 64 bytes.
The header has the type and length of each array.
"""

from __future__ import annotations

import glob
import json
import mmap
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from qabench.data.rows import Json
from qabench.errors import InputError, unreadable
from qabench.io.files import replacing, sweep
from qabench.io.limits import json_of
from qabench.retrieval.bm25.building import Content, Filters, InvertedScorer, Origin
from qabench.retrieval.bm25.counts import TermCounts
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.ids import Ids
from qabench.retrieval.bm25.search import Array
from qabench.retrieval.bm25.tokenizers import Tokenizer, Words, name_of

MAGIC = b"QABBM25"
# Increased when an index of an earlier version can no longer be read.
VERSION = 8
START = len(MAGIC) + 1 + 16
# Arrays that begin at a cache line can be used without a copy.
ALIGNMENT = 64
UNSIGNED = ("|u1", "<u2", "<u4")
COUNTS = {
    "starts": ("<i8",),
    "documents": ("<i4",),
    "counts": UNSIGNED,
    "places": UNSIGNED,
    "lengths": ("<i4",),
}
TYPES = COUNTS | {
    "vocabulary": ("|u1",),
    "ends": ("<i8",),
    "digests": ("<u8",),
    "positions": ("<i8",),
    "ids": ("|u1",),
    "id_ends": ("<i8",),
}
FILTER_TYPES = ("<i4",)
ORIGIN = ("columns", "filters", "span", "cache_key", "id_column", "empty")


def save(
    path: Path, parameters: Parameters, tokenizer: Tokenizer, content: Content, about: Json
) -> None:
    """Write an index to a file (see ``BM25Index.save``).

    Temporary files of killed processes are deleted.

    Raises:
        InputError: the tokenizer has no name.
        QabenchError: the file cannot be written. An existing file is not changed.
    """
    name = name_of(tokenizer)
    # The qualified names of lambdas and of nested functions contain <lambda> or <locals>.
    if "<" in name:
        raise InputError(
            f"the tokenizer {name} cannot be saved: use a module-level function, or an object with a name"
        )
    scorer, filters, origin = content
    # The vocabulary is in the order of the terms' numbers.
    terms = list(scorer.vocabulary)
    words = "".join(terms).encode("utf-8", "surrogatepass")
    arrays = {name: getattr(scorer.counts, name) for name in COUNTS}
    arrays["vocabulary"] = np.frombuffer(words, dtype=np.uint8)
    arrays["ends"] = np.cumsum([0, *map(len, terms)])
    arrays["digests"] = origin.digests
    arrays["positions"] = np.empty(0, np.int64) if origin.positions is None else origin.positions
    if origin.ids is not None:
        arrays["ids"] = origin.ids.data
        arrays["id_ends"] = origin.ids.ends
    for number, codes in enumerate(filters.codes.values()):
        arrays[f"filter_{number}"] = codes
    header = {
        "parameters": asdict(parameters),
        "tokenizer": name,
        "tokenizer_spec": getattr(tokenizer, "spec", None),
        "filters": filters.values,
        "about": about,
        "origin": {name: getattr(origin, name) for name in ORIGIN},
        "arrays": {name: [array.dtype.str, len(array)] for name, array in arrays.items()},
    }

    # Spaces after the header let the first array begin at a multiple of the alignment.
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-(START + len(text)) % ALIGNMENT)
    parts: list[Any] = [len(text).to_bytes(8, "little"), text]
    for array in arrays.values():
        # ``view`` gives the bytes of the array without a copy.
        parts.append(np.ascontiguousarray(array).view(np.uint8).data)
        parts.append(b"\0" * (-array.nbytes % ALIGNMENT))

    checksum = xxhash.xxh3_64()
    for part in parts:
        checksum.update(part)
    sweep(path.parent, glob.escape(path.name))
    with replacing(path) as file:
        file.write(MAGIC + bytes([VERSION]))
        file.write(checksum.intdigest().to_bytes(8, "little"))
        file.writelines(parts)


def load(path: Path, tokenizer: Tokenizer | None) -> tuple[Parameters, Tokenizer, Content, Json]:
    """Return the index in a file.

    Args:
        path: the file.
        tokenizer: see ``BM25Index.load``.

    Raises:
        InputError: see ``BM25Index.load``.
    """
    try:
        header, arrays = _read(path)
        positions = arrays["positions"] if len(arrays["positions"]) else None
        fields = header["origin"] | {"filters": tuple(header["origin"]["filters"])}
        ids = Ids(arrays["ids"], arrays["id_ends"]) if "ids" in arrays else None
        origin = Origin(**fields, digests=arrays["digests"], positions=positions, ids=ids)
        parameters = Parameters.of(**header["parameters"])
        tokenizer = _tokenizer(path, header["tokenizer"], header["tokenizer_spec"], tokenizer)
        codes = {name: arrays[f"filter_{number}"] for number, name in enumerate(origin.filters)}
        filters = Filters(header["filters"], codes)
        words = arrays["vocabulary"].tobytes().decode("utf-8", "surrogatepass")
        bounds = enumerate(pairwise(arrays["ends"].tolist()))
        terms = {words[start:end]: number for number, (start, end) in bounds}
        counts = TermCounts(terms, *(arrays[name] for name in COUNTS))
        _check(counts, parameters, filters, origin)
        # Files that earlier versions of qabench wrote do not have "about".
        about = dict(header.get("about", {}))
        content = Content(InvertedScorer(counts, parameters), filters, origin)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise _damaged(path, f"its content does not fit together: {error!r:.100}") from None
    return parameters, tokenizer, content, about


def _damaged(path: Path, detail: str) -> InputError:
    return InputError(f"the index {path} is damaged ({detail}); build it again or copy it again")


def _read(path: Path) -> tuple[Json, dict[str, Array]]:
    """Return the header and the memory-mapped arrays."""
    try:
        with path.open("rb") as file:
            begin = file.read(START)
            if begin[: len(MAGIC)] != MAGIC:
                raise InputError(f"{path} is not a BM25 index of qabench")
            if len(begin) == START and (version := begin[len(MAGIC)]) != VERSION:
                raise InputError(
                    f"the index {path} has format {version}; this qabench reads {VERSION}. Build it again"
                )
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise unreadable(f"the index {path}", error) from None
    checksum = int.from_bytes(begin[-16:-8], "little")
    if xxhash.xxh3_64_intdigest(data[START - 8 :]) != checksum:
        raise _damaged(path, f"its {len(data)} bytes have another checksum")
    end = START + int.from_bytes(begin[-8:], "little")
    header = json_of(bytes(data[START:end]))
    arrays = {}
    for name, (dtype, length) in header["arrays"].items():
        if dtype not in TYPES.get(name, FILTER_TYPES):
            raise ValueError(f"{name} has the type {dtype}")
        array = np.frombuffer(data, dtype, length, end) if length else np.empty(0, dtype)
        arrays[name] = array
        end += array.nbytes + -array.nbytes % ALIGNMENT
    return header, arrays


def _check(counts: TermCounts, parameters: Parameters, filters: Filters, origin: Origin) -> None:
    """Raise ValueError if the parts do not fit together, because searches do not check bounds."""
    starts = counts.starts
    documents = counts.documents
    size = len(counts.lengths)
    positions = origin.positions if origin.positions is not None else np.arange(size)
    gaps = np.diff(documents)
    # Documents ascend within a term, but not from one term to the next.
    gaps[starts[1:-1] - 1] = 1
    has_postings = (
        starts[0] == 0
        and starts[-1] == len(documents) == len(counts.counts)
        and len(counts.places) == len(documents) * parameters.sums_idf
        and len(counts.vocabulary) == len(starts) - 1
        and (np.diff(starts) > 0).all()
    )
    has_documents = (
        documents.min() >= 0
        and documents.max() < size
        and (gaps > 0).all()
        and counts.counts.min() > 0
        and counts.lengths.min() >= 0
        and counts.lengths.sum() == counts.counts.sum()
    )
    has_positions = (
        len(origin.digests) == len(positions) == size
        and positions[0] >= 0
        and positions[-1] < origin.span
        and (np.diff(positions) > 0).all()
        and (origin.positions is not None or origin.span == size)
        and type(origin.span) is int
    )
    has_ids = (origin.id_column is None) == (origin.ids is None) and (
        origin.ids is None
        or (
            len(origin.ids) == size
            and origin.ids.ends[0] == 0
            and origin.ids.ends[-1] == len(origin.ids.data)
            and (np.diff(origin.ids.ends) > 0).all()
        )
    )
    if not (has_postings and has_documents and has_positions and has_ids):
        raise ValueError("its arrays")
    for name, codes in filters.codes.items():
        if len(codes) != size or codes.min() < 0 or codes.max() >= len(filters.values[name]):
            raise ValueError(f"the filter {name}")


def _tokenizer(path: Path, name: str, spec: Any, override: Tokenizer | None) -> Tokenizer:
    """Return the tokenizer of a saved index.

    Args:
        path: the file, for messages.
        name: the name of the tokenizer that the index was built with.
        spec: the arguments of ``Words``. None if the tokenizer was a custom function.
        override: the tokenizer that the user passes, or None.

    Raises:
        InputError: a custom function is not passed, or has another name.
    """
    if override is None and spec is None:
        raise InputError(
            f"the index {path} was built with the tokenizer {name}: pass it as tokenizer="
        )
    tokenizer = Words(**spec) if override is None else override
    if (other := name_of(tokenizer)) != name:
        raise InputError(
            f"the index {path} was built with the tokenizer {name}, not {other}: pass {name}, or rebuild"
        )
    return tokenizer
