"""Uploads: which files are large, their content by the LFS protocol, and the commit."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from hub_server.discussions import open_discussion
from hub_server.routes import Refusal, Request, Response, route
from hub_server.store import MAIN, Blob, Commit, Repo, Store

if TYPE_CHECKING:
    from hub_server.hub import Hub

LARGE = 10_000_000


@route("POST", "/api/<repo>/preupload/<revision>")
def preupload(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    """How to upload each file, and the digest of the current file with its name, so that clients skip equal files."""
    repo = hub.writable(kind, id, request.user)
    tree = hub.commit(repo, revision).tree
    patterns = list(_large_patterns(hub.store, tree))
    asked = request.json()["files"]
    return Response.of({"files": [_mode(file, tree.get(file["path"]), patterns) for file in asked]})


def _large_patterns(store: Store, tree: dict[str, Blob]) -> Iterator[str]:
    if attributes := tree.get(".gitattributes"):
        for line in store.contents[attributes.oid].decode().splitlines():
            pattern, _, rest = line.partition(" ")
            if "filter=lfs" in rest:
                yield pattern


def _mode(asked: dict[str, Any], known: Blob | None, patterns: list[str]) -> dict[str, Any]:
    name = asked["path"].rpartition("/")[2]
    binary = b"\0" in base64.b64decode(asked["sample"])
    large = asked["size"] >= LARGE or binary or any(fnmatch(name, pattern) for pattern in patterns)
    return {
        "path": asked["path"],
        "uploadMode": "lfs" if large else "regular",
        "shouldIgnore": False,
        "oid": known.etag if known else None,
    }


@route("POST", r"/(?P<kind>datasets|spaces)?/?(?P<id>[^/]+/[^/]+)\.git/info/lfs/objects/batch")
def batch(hub: Hub, request: Request, kind: str = "models", *, id: str) -> Response:
    """Where to upload each large file; nowhere if it already exists."""
    hub.writable(kind, id, request.user)
    objects: list[dict[str, Any]] = [{"oid": o["oid"], "size": o["size"]} for o in request.json()["objects"]]
    for wanted in objects:
        if wanted["oid"] not in hub.store.contents:
            wanted["actions"] = {
                "upload": {"href": f"{hub.cdn}/upload/{wanted['oid']}?signed"},
                "verify": {"href": f"{hub.url}/api/verify/{wanted['oid']}"},
            }
    return Response.of({"transfer": "basic", "objects": objects})


@route("PUT", "/upload/(?P<sha256>[0-9a-f]{64})")
def upload(hub: Hub, request: Request, sha256: str) -> Response:
    if hashlib.sha256(request.body).hexdigest() != sha256:
        raise Refusal(400, "The content is not of the digest announced")
    hub.store.contents[sha256] = request.body
    return Response(200)


@route("POST", "/api/verify/(?P<sha256>[0-9a-f]{64})")
def verify(hub: Hub, request: Request, sha256: str) -> Response:
    if len(hub.store.contents.get(sha256, b"")) != request.json()["size"]:
        raise Refusal(400, "The content was not uploaded")
    return Response.of({})


@route("POST", "/api/<repo>/commit/<revision>")
def commit(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    """Creates a commit, even if it changes nothing (clients should not send such commits)."""
    repo = hub.writable(kind, id, request.user)
    lines = [json.loads(line) for line in request.body.splitlines()]
    header = lines[0]["value"]
    with hub.lock:
        parent = hub.commit(repo, revision)
        if header.get("parentCommit", parent.id) != parent.id:
            raise Refusal(412, "A commit has happened since. Please refresh and try again.")
        tree = dict(parent.tree)
        for line in lines[1:]:
            _change(hub.store, tree, line["key"], line["value"])
        ref, url = _target(hub, repo, revision, request.flag("create_pr"), header)
        made = Commit(tree, parent.id, header["summary"], header.get("description", ""), request.user or "")
        repo.add(ref, made)
    place = f"{hub.url}/{repo.path}/commit/{made.id}"
    return Response.of({"success": True, "commitOid": made.id, "commitUrl": place, "pullRequestUrl": url})


def _target(hub: Hub, repo: Repo, revision: str, as_pr: bool, header: dict[str, Any]) -> tuple[str, str | None]:
    """The ref that a commit moves, and the URL of the pull request that it opens."""
    if as_pr:
        number = open_discussion(repo, header["summary"], header.get("description", ""), pull_request=True)
        return f"refs/pr/{number}", f"{hub.url}/{repo.path}/discussions/{number}"
    if revision in repo.refs:
        return revision, None
    if f"refs/heads/{revision}" not in repo.refs:
        raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
    return MAIN if revision == "main" else f"refs/heads/{revision}", None


def _change(store: Store, tree: dict[str, Blob], key: str, value: dict[str, Any]) -> None:
    path = value["path"]
    if key == "file":
        tree[path] = store.regular(base64.b64decode(value["content"]))
    elif key == "lfsFile":
        if (blob := store.large(value["oid"])) is None:
            raise Refusal(400, f"{path}: the large file {value['oid']} was not uploaded")
        tree[path] = blob
    elif key in ("deletedFile", "deletedFolder"):
        start = path.rstrip("/") + "/"
        gone = [name for name in tree if name == path or (key == "deletedFolder" and name.startswith(start))]
        if not gone:
            raise Refusal(404, f"A file with this name doesn't exist: {path}", "EntryNotFound")
        for name in gone:
            del tree[name]
    else:
        raise Refusal(400, f"unknown operation {key!r}")
