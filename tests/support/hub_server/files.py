"""Downloads: where a file is, and its bytes, whole or a range."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from hub_server.routes import Refusal, Request, Response, route
from hub_server.store import Blob, Commit

if TYPE_CHECKING:
    from hub_server.hub import Hub

_SIGNATURE = "Signature=of-the-test-hub"
_PLACE = r"/(?P<kind>datasets|spaces)?/?(?P<id>[^/]+/[^/]+)/"


@route("GET", rf"{_PLACE}resolve/<revision>/(?P<path>.+)")
def resolve(hub: Hub, request: Request, kind: str = "models", *, id: str, revision: str, path: str) -> Response:
    """The location of a file's bytes, with metadata for the client; large files are on another origin."""
    commit, blob = _find(hub, request, kind, id, revision, path)
    headers = {"X-Repo-Commit": commit.id, "ETag": f'"{blob.etag}"'}
    if blob.sha256:
        headers |= {"X-Linked-Size": str(blob.size), "X-Linked-ETag": f'"{blob.sha256}"'}
        return Response(302, b"", {**headers, "Location": f"{hub.cdn}/cdn/{blob.sha256}?{_SIGNATURE}"})
    place = "/".join(["/api/resolve-cache", kind, id, commit.id, quote(path)])
    return Response(307, b"", {**headers, "Location": place})


@route("GET", r"/api/resolve-cache/<repo>/<revision>/(?P<path>.+)")
def small(hub: Hub, request: Request, kind: str, id: str, revision: str, path: str) -> Response:
    commit, blob = _find(hub, request, kind, id, revision, path)
    response = ranged(request, hub.store.contents[blob.oid])
    response.headers |= {"X-Repo-Commit": commit.id, "ETag": f'"{blob.oid}"'}
    return response


@route("GET", r"/cdn/(?P<sha256>[0-9a-f]{64})")
def large(hub: Hub, request: Request, sha256: str) -> Response:
    """The other origin: anyone with the signed URL may read; tokens must not be sent."""
    if "Authorization" in request.headers or _SIGNATURE not in request.target:
        raise Refusal(400, "Only one auth mechanism allowed")
    response = ranged(request, hub.store.contents[sha256])
    response.headers["ETag"] = f'"{sha256}"'
    return response


def _find(hub: Hub, request: Request, kind: str, id: str, revision: str, path: str) -> tuple[Commit, Blob]:
    commit = hub.commit(hub.readable(kind, id, request.user), revision)
    if (blob := commit.tree.get(path)) is None:
        raise Refusal(404, "Entry not found", "EntryNotFound", **{"X-Repo-Commit": commit.id})
    return commit, blob


def ranged(request: Request, content: bytes) -> Response:
    headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
    asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", request.headers.get("Range", "")))
    if not asked or not any(asked.groups()):
        return Response(200, content, headers)
    first, last = asked.groups()
    start = int(first) if first else max(0, len(content) - int(last))
    stop = min(int(last) + 1, len(content)) if first and last else len(content)
    if start >= stop:
        return Response(416, b"", {**headers, "Content-Range": f"bytes */{len(content)}"})
    return Response(206, content[start:stop], {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"})
