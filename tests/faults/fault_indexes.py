"""Damaged and crafted BM25 index files: the right ranking or an InputError."""

from __future__ import annotations

import copy
import functools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from fault_harness import Campaign, damaged

from qabench.errors import InputError
from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.storage import START

ROWS = [{"text": f"w{i % 7} w{i % 31} w{i % 97} w{i * i % 211} é{i}", "kind": i % 3} for i in range(3000)]
QUERIES = ["w1 w2 w3", "w96 é17", "w5 w5 w210 é2999 nothing", ""]
JUNK: list[Any] = [None, True, -1, 0, 1, 2**31, 2**63, 10**30, 0.5, float("nan"), float("inf"), "", "x"]
JUNK += ["<f8", "<i4", "|O"]
JUNK += ["\ud800", [], [1], ["x"], {}, {"x": 1}, [[[]]], ["<f8", 10**9, 64, 0], ["<i4", 1, -64, None]]


@functools.cache
def index_file() -> tuple[bytes, Any]:
    """An index, and what its searches find."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.bm25"
        BM25Index.from_dataset(ROWS, filters=["kind"]).save(path)
        return path.read_bytes(), searches(BM25Index.load(path))


def searches(index: BM25Index) -> Any:
    where = [index.search(query, 7, where={"kind": 2}) for query in QUERIES]
    return [index.search(query, 10) for query in QUERIES], where, [index.scores(query).tolist() for query in QUERIES]


def damaged_index(chance: random.Random, folder: Path) -> str:
    whole, expected = index_file()
    path = folder / "index.bm25"
    path.write_bytes(damaged(whole, chance))
    try:
        found = searches(BM25Index.load(path))
    except InputError:
        return "InputError"
    if found != expected:
        raise AssertionError("another ranking")
    return "equal"


def crafted_index(chance: random.Random, folder: Path) -> str:
    """A header or array with another content, and a checksum that matches."""
    whole, expected = index_file()
    end = START + int.from_bytes(whole[START - 8 : START], "little")
    header, body = json.loads(whole[START:end]), bytearray(whole[end:])
    if chance.random() < 0.6:
        for _ in range(chance.choice((1, 1, 2, 4))):
            replace(header["arrays"], chance)
    else:
        craft_array(header, body, chance)
    text = json.dumps(header).encode()
    if chance.random() < 0.05:
        text = chance.choice((b"[" * 100_000, b"{}", b"null", b"1" * 5000, b"\xff", b'{"arrays": {}}'))
    content = len(text).to_bytes(8, "little") + text + bytes(body)
    path = folder / "index.bm25"
    path.write_bytes(whole[: START - 16] + xxhash.xxh3_64_intdigest(content).to_bytes(8, "little") + content)
    try:
        index = BM25Index.load(path)
        found = searches(index)
        if chance.random() < 0.2:
            index.save(folder / "copy.bm25")
    except InputError:
        return "InputError"
    return "equal" if found == expected else "the crafted content's ranking"


def replace(node: Any, chance: random.Random) -> None:
    """Replaces, removes or adds a random value somewhere in a tree of JSON."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(node[key], dict | list) and chance.random() < 0.8:
            node = node[key]
            continue
        kind = chance.random()
        if kind < 0.15:
            del node[key]
        elif kind < 0.5 and type(node[key]) is int:
            node[key] += chance.choice((-64, -1, 1, 8, 64, 1 << 20))
        else:
            node[key] = copy.deepcopy(chance.choice(JUNK))
        return


def craft_array(header: dict[str, Any], body: bytearray, chance: random.Random) -> None:
    dtype, length, place = header["arrays"][chance.choice(list(header["arrays"]))]
    array = np.frombuffer(body, dtype=dtype, count=length, offset=place)
    by_kind = {"i": (-1, 2**31 - 1, length), "u": (0, 255)}
    extremes = by_kind.get(array.dtype.kind, (float("nan"), float("inf"), -1.0))
    for _ in range(chance.choice((1, 3, 100))):
        array[chance.randrange(length)] = chance.choice(extremes)


CAMPAIGNS = [
    Campaign("index", "damaged BM25 index file", "right ranking or InputError", damaged_index),
    Campaign("index-crafted", "crafted BM25 index file with right checksums", "InputError alone", crafted_index),
]
