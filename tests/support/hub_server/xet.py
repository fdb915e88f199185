"""Uploads by Xet, the protocol that huggingface_hub takes where hf_xet is installed.

A client cuts files into chunks, packs new chunks into "xorbs", and says in a "shard" of which ranges of chunks each
file consists. This storage puts the files together at once and checks their SHA-256. It tells no client of another's
chunks, and serves no downloads. The formats are those of the published specification (huggingface.co/docs/xet).
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hub_server.routes import Refusal, Request, Response, route

if TYPE_CHECKING:
    from hub_server.hub import Hub

_CAS = r"/cas/(?P<storage>[0-9a-f]+)"
_HEADER, _ENTRY = 48, 48  # bytes of a shard's header, and of each of its entries
_VERIFICATION, _METADATA = 1 << 31, 1 << 30  # flags of a file: what follows its ranges
_END = b"\xff" * 32
_STORED, _LZ4, _GROUPED_LZ4 = range(3)


@route("GET", r"/api/<repo>/xet-(?P<access>read|write)-token/<revision>")
def token(hub: Hub, request: Request, kind: str, id: str, access: str, revision: str) -> Response:
    (hub.writable if access == "write" else hub.readable)(kind, id, request.user)
    told = {"casUrl": f"{hub.cdn}{hub.cas_path}", "exp": int(time.time()) + 3600, "accessToken": "xet"}
    response = Response.of(told)
    names = {"casUrl": "X-Xet-Cas-Url", "exp": "X-Xet-Token-Expiration", "accessToken": "X-Xet-Access-Token"}
    response.headers |= {names[key]: str(value) for key, value in told.items()}
    return response


@route("POST", rf"{_CAS}/v1/xorbs/default/(?P<xorb>[0-9a-f]+)")
def put_xorb(hub: Hub, request: Request, storage: str, xorb: str) -> Response:
    known = xorb in hub.xorbs
    hub.xorbs[xorb] = list(_chunks(request.body))
    return Response.of({"was_inserted": not known})


@route("POST", rf"{_CAS}/v1/shards")
def put_shard(hub: Hub, request: Request, storage: str) -> Response:
    for sha256, ranges in _files(request.body):
        if missing := [xorb for xorb, _, _ in ranges if xorb not in hub.xorbs]:
            raise Refusal(400, f"unknown xorbs: {missing}")
        content = b"".join(chunk for xorb, start, stop in ranges for chunk in hub.xorbs[xorb][start:stop])
        if hashlib.sha256(content).hexdigest() != sha256:
            raise Refusal(400, f"the chunks make no file of the digest {sha256}")
        hub.store.contents[sha256] = content
    return Response.of({"result": 1})


def _chunks(xorb: bytes) -> Iterator[bytes]:
    """Each chunk follows 8 bytes: version 0, its size here (3), its compression (1), its true size (3)."""
    position = 0
    while position < len(xorb) and xorb[position] == 0:
        size, scheme = int.from_bytes(xorb[position + 1 : position + 4], "little"), xorb[position + 4]
        true_size = int.from_bytes(xorb[position + 5 : position + 8], "little")
        position += 8
        yield _unpacked(xorb[position : position + size], scheme, true_size)
        position += size


def _unpacked(packed: bytes, scheme: int, size: int) -> bytes:
    import pyarrow

    if scheme == _STORED:
        return packed
    content: bytes = pyarrow.Codec("lz4").decompress(packed, size).to_pybytes()
    if scheme == _LZ4:
        return content
    # Bytes 0, 4, 8 ... came first, then bytes 1, 5, 9 ..., and so on.
    mixed, position = bytearray(size), 0
    for first in range(4):
        count = len(range(first, size, 4))
        mixed[first::4] = content[position : position + count]
        position += count
    return bytes(mixed)


def _files(shard: bytes) -> Iterator[tuple[str, list[tuple[str, int, int]]]]:
    """The SHA-256 of each file, and its parts: (xorb, first chunk, chunk after the last)."""
    position = _HEADER
    while (entry := shard[position : position + _ENTRY])[:32] != _END:
        flags, count = struct.unpack_from("<II", entry, 32)
        position += _ENTRY
        ranges = []
        for number in range(count):
            part = shard[position + number * _ENTRY :]
            start, stop = struct.unpack_from("<II", part, 40)
            ranges.append((_text(part[:32]), start, stop))
        position += count * _ENTRY * (2 if flags & _VERIFICATION else 1)
        if not flags & _METADATA:
            raise Refusal(400, "a file in the shard has no SHA-256")
        yield _text(shard[position : position + 32]), ranges
        position += _ENTRY


def _text(digest: bytes) -> str:
    """A digest as text: four little-endian numbers of 64 bits."""
    return "".join(f"{number:016x}" for number in struct.unpack("<4Q", digest))
