"""The Hub's API: accounts, repositories, uploads, downloads, pull requests, collections, cards."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any
from urllib.parse import parse_qs, quote

import yaml  # type: ignore[import-untyped]

from hub_server.server import Hub, Refusal, Request, Response, route
from hub_server.store import MAIN, Blob, Commit, Repo, Store, now

COLORS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
LICENSES = ("apache-2.0", "mit", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-sa-4.0", "other", "unknown")
LIMITS = {"title": 60, "description": 150, "note": 500}  # of collections, in characters
_SIGNATURE = "Signature=of-the-test-hub"


# --- accounts and repositories


@route("GET", "/api/whoami-v2")
def whoami(hub: Hub, request: Request) -> Response:
    if request.user is None:
        raise Refusal(401, "Invalid credentials in Authorization header")
    role = {"accessToken": {"displayName": "test", "role": "write"}}
    return Response.of({"type": "user", "name": request.user, "orgs": [], "auth": role})


@route("POST", "/api/repos/create")
def create(hub: Hub, request: Request) -> Response:
    body = request.json()
    kind, id = body.get("type", "model"), f"{body['organization'] or request.user}/{body['name']}"
    hub.check_owner(id, request.user)
    with hub.lock:
        existing = hub.store.repos.get((kind, id))
        repo = existing or hub.store.create(kind, id, body.get("visibility") == "private", body.get("sdk"))
    answer = {"url": f"{hub.url}/{repo.path}", "name": id, "id": id}
    if existing:
        return Response.of({"error": f"You already created this {kind} repo: {id}", **answer}, 409)
    return Response.of(answer)


@route("GET", "/api/<repo>")
@route("GET", "/api/<repo>/revision/<revision>")
def info(hub: Hub, request: Request, kind: str, id: str, revision: str = "main") -> Response:
    repo = hub.readable(kind, id, request.user)
    commit = hub.commit(repo, revision)
    card = commit.tree.get("README.md")
    data = card_data(hub.store.contents[card.etag].decode()) if card else {}
    document: dict[str, Any] = {
        "_id": commit.id[:24], "id": id, "author": id.split("/")[0], "sha": commit.id, "private": repo.private,
        "createdAt": repo.created, "lastModified": commit.date, "gated": False, "disabled": False, "downloads": 0,
        "likes": 0, "tags": data.get("tags", []), "cardData": data, "sdk": repo.sdk,
        "siblings": [{"rfilename": path} for path in sorted(commit.tree)],
    }  # fmt: skip
    if fields := request.query.get("expand"):
        document = {name: document[name] for name in ("_id", "id", *fields)}
    return Response.of(document)


@route("GET", "/api/<repo>/tree/<revision>(/(?P<folder>.+))?")
def tree(hub: Hub, request: Request, kind: str, id: str, revision: str, folder: str = "") -> Response:
    commit = hub.commit(hub.readable(kind, id, request.user), revision)
    prefix = f"{folder}/" if folder else ""
    below = [path[len(prefix) :] for path in commit.tree if path.startswith(prefix)]
    if folder and not below:
        raise Refusal(404, f"{folder} does not exist on {revision}", "EntryNotFound")
    names = sorted({*below, *(path[:i] for path in below for i, letter in enumerate(path) if letter == "/")})
    recursive = request.query.get("recursive", ["false"])[0].lower() in ("1", "true")
    if not recursive:
        names = [name for name in names if "/" not in name]
    start = int(request.query.get("cursor", ["0"])[0])
    stop = start + hub.page_size
    page = [_entry(commit, prefix + name) for name in names[start:stop]]
    following = f"{hub.url}{request.path}?recursive={recursive}&cursor={stop}"
    return Response.of(page, **({"Link": f'<{following}>; rel="next"'} if stop < len(names) else {}))


@route("POST", "/api/<repo>/paths-info/<revision>")
def paths_info(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    commit = hub.commit(hub.readable(kind, id, request.user), revision)
    folders = {path.rpartition("/")[0] for path in commit.tree}
    paths = parse_qs(request.body.decode()).get("paths", [])
    return Response.of([_entry(commit, path) for path in paths if path in commit.tree or path in folders])


def _entry(commit: Commit, path: str) -> dict[str, Any]:
    """Return a file or folder of a listing."""
    if (blob := commit.tree.get(path)) is None:
        return {"type": "directory", "oid": commit.id, "size": 0, "path": path}
    large = {"lfs": {"oid": blob.sha256, "size": blob.size, "pointerSize": 130}} if blob.sha256 else {}
    return {"type": "file", "oid": blob.oid, "size": blob.size, "path": path, **large}


@route("GET", "/api/<repo>/refs")
def refs(hub: Hub, request: Request, kind: str, id: str) -> Response:
    repo = hub.readable(kind, id, request.user)
    prefixes = {"branches": "refs/heads/", "tags": "refs/tags/", "converts": "refs/convert/"}
    return Response.of(
        {
            name: [
                {"name": ref.removeprefix(prefix), "ref": ref, "targetCommit": target}
                for ref, target in repo.refs.items()
                if ref.startswith(prefix)
            ]
            for name, prefix in prefixes.items()
        }
    )


@route("POST", "/api/<repo>/tag/<revision>")
def tag(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    repo = hub.writable(kind, id, request.user)
    ref = f"refs/tags/{request.json()['tag']}"
    with hub.lock:
        if ref in repo.refs:
            raise Refusal(409, f"tag already exists: {ref}")
        repo.refs[ref] = hub.commit(repo, revision).id
    return Response.of({"ref": ref})


# --- uploads


@route("POST", "/api/<repo>/preupload/<revision>")
def preupload(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    """Say how to upload each file, and the digest of the current one, so that clients skip equal files."""
    files = hub.commit(hub.writable(kind, id, request.user), revision).tree
    attributes = hub.store.contents[files[".gitattributes"].oid].decode() if ".gitattributes" in files else ""
    patterns = [line.split()[0] for line in attributes.splitlines() if "filter=lfs" in line]

    def mode(file: dict[str, Any]) -> dict[str, Any]:
        name, current = file["path"].rpartition("/")[2], files.get(file["path"])
        binary = b"\0" in base64.b64decode(file["sample"])
        large = binary or any(fnmatch(name, pattern) for pattern in patterns)
        oid = current.etag if current else None
        return {"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid}

    return Response.of({"files": [mode(file) for file in request.json()["files"]]})


@route("POST", r"/<git>\.git/info/lfs/objects/batch")
def batch(hub: Hub, request: Request, kind: str = "models", *, id: str) -> Response:
    """Say where to upload each large file; nowhere if it already exists."""
    hub.writable(kind, id, request.user)
    objects = [{"oid": file["oid"], "size": file["size"]} for file in request.json()["objects"]]
    for file in objects:
        if file["oid"] not in hub.store.contents:
            upload = {"href": f"{hub.cdn}/upload/{file['oid']}?signed"}
            file["actions"] = {"upload": upload, "verify": {"href": f"{hub.url}/api/verify/{file['oid']}"}}
    return Response.of({"transfer": "basic", "objects": objects})


@route("PUT", "/upload/(?P<sha256>[0-9a-f]{64})")
def upload(hub: Hub, request: Request, sha256: str) -> Response:
    if "Authorization" in request.headers or hashlib.sha256(request.body).hexdigest() != sha256:
        raise Refusal(400, "The content is not of the digest announced, or a token was sent")
    hub.store.contents[sha256] = request.body
    return Response()


@route("POST", "/api/verify/(?P<sha256>[0-9a-f]{64})")
def verify(hub: Hub, request: Request, sha256: str) -> Response:
    if len(hub.store.contents.get(sha256, b"")) != request.json()["size"]:
        raise Refusal(400, "The content was not uploaded")
    return Response.of({})


@route("POST", "/api/<repo>/commit/<revision>")
def commit(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    """Create a commit, even if it changes nothing (clients should not send such commits)."""
    repo = hub.writable(kind, id, request.user)
    lines = [json.loads(line) for line in request.body.splitlines()]
    header = lines[0]["value"]
    with hub.lock:
        parent = hub.commit(repo, revision)
        if header.get("parentCommit", parent.id) != parent.id:
            raise Refusal(412, "A commit has happened since. Please refresh and try again.")
        files = dict(parent.tree)
        for line in lines[1:]:
            _change(hub.store, files, line["key"], line["value"])
        ref, url = MAIN, None
        if "create_pr" in request.query:
            number = len(repo.discussions) + 1
            repo.discussions.append(_pull_request(repo, number, header))
            ref, url = f"refs/pr/{number}", f"{hub.url}/{repo.path}/discussions/{number}"
        new = Commit(files, parent.id, header["summary"])
        repo.add(ref, new)
    place = f"{hub.url}/{repo.path}/commit/{new.id}"
    return Response.of({"success": True, "commitOid": new.id, "commitUrl": place, "pullRequestUrl": url})


def _change(store: Store, files: dict[str, Blob], key: str, value: dict[str, Any]) -> None:
    path = value["path"]
    if key == "file":
        files[path] = store.regular(base64.b64decode(value["content"]))
    elif key == "lfsFile":
        if (blob := store.large(value["oid"])) is None:
            raise Refusal(400, f"{path}: the large file {value['oid']} was not uploaded")
        files[path] = blob
    elif key == "deletedFile" and path in files:
        del files[path]
    else:
        raise Refusal(404, f"A file with this name doesn't exist: {path}", "EntryNotFound")


# --- pull requests


def _pull_request(repo: Repo, number: int, header: dict[str, Any]) -> dict[str, object]:
    comment = {"edited": False, "hidden": False, "latest": {"raw": header.get("description", "")}}
    author = {"name": "tester"}
    event = {"id": "0" * 24, "type": "comment", "createdAt": now(), "author": author, "data": comment}
    return {
        "num": number, "title": header["summary"], "status": "draft", "createdAt": now(), "isPullRequest": True,
        "author": author, "repo": {"name": repo.id, "type": repo.kind}, "events": [event],
        "changes": {"base": MAIN}, "filesWithConflicts": [],
    }  # fmt: skip


@route("GET", r"/api/<repo>/discussions/(?P<number>\d+)")
def discussion(hub: Hub, request: Request, kind: str, id: str, number: str) -> Response:
    return Response.of(hub.readable(kind, id, request.user).discussions[int(number) - 1])


@route("POST", r"/api/<repo>/discussions/(?P<number>\d+)/merge")
def merge(hub: Hub, request: Request, kind: str, id: str, number: str) -> Response:
    """Move main to the request's last commit."""
    repo = hub.writable(kind, id, request.user)
    repo.refs[MAIN] = repo.refs[f"refs/pr/{number}"]
    return Response.of({})


# --- downloads


@route("GET", "/<git>/resolve/<revision>/(?P<path>.+)")
def resolve(hub: Hub, request: Request, kind: str = "models", *, id: str, revision: str, path: str) -> Response:
    """Redirect to a file's bytes, with metadata for the client; large files are on another origin."""
    commit, blob = _blob(hub, request, kind, id, revision, path)
    headers = {"X-Repo-Commit": commit.id, "ETag": f'"{blob.etag}"'}
    if blob.sha256:
        headers |= {"X-Linked-Size": str(blob.size), "X-Linked-ETag": f'"{blob.sha256}"'}
        return Response(302, b"", {**headers, "Location": f"{hub.cdn}/cdn/{blob.sha256}?{_SIGNATURE}"})
    place = "/".join(["/api/resolve-cache", kind, id, commit.id, quote(path)])
    return Response(307, b"", {**headers, "Location": place})


@route("GET", r"/api/resolve-cache/<repo>/<revision>/(?P<path>.+)")
def small(hub: Hub, request: Request, kind: str, id: str, revision: str, path: str) -> Response:
    commit, blob = _blob(hub, request, kind, id, revision, path)
    response = _ranged(request, hub.store.contents[blob.oid])
    response.headers |= {"X-Repo-Commit": commit.id, "ETag": f'"{blob.oid}"'}
    return response


@route("GET", r"/cdn/(?P<sha256>[0-9a-f]{64})")
def large(hub: Hub, request: Request, sha256: str) -> Response:
    """Answer as the other origin: anyone with the signed URL may read; tokens must not be sent."""
    if "Authorization" in request.headers or _SIGNATURE not in request.target:
        raise Refusal(400, "Only one auth mechanism allowed")
    response = _ranged(request, hub.store.contents[sha256])
    response.headers["ETag"] = f'"{sha256}"'
    return response


def _blob(hub: Hub, request: Request, kind: str, id: str, revision: str, path: str) -> tuple[Commit, Blob]:
    commit = hub.commit(hub.readable(kind, id, request.user), revision)
    if (blob := commit.tree.get(path)) is None:
        raise Refusal(404, "Entry not found", "EntryNotFound", **{"X-Repo-Commit": commit.id})
    return commit, blob


def _ranged(request: Request, content: bytes) -> Response:
    headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range") or "")
    if not match:
        return Response(200, content, headers)
    start, stop = int(match[1]), min(int(match[2] or len(content)) + 1, len(content))
    if start >= stop:
        return Response(416, b"", {**headers, "Content-Range": f"bytes */{len(content)}"})
    return Response(206, content[start:stop], {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"})


# --- collections


def _collection(hub: Hub, request: Request, slug: str, write: bool = False) -> dict[str, Any]:
    if write:
        hub.check_owner(slug, request.user)
    collection = hub.collections.get(slug)
    if collection is None or (collection["private"] and not hub.may_write(slug, request.user)):
        raise Refusal(404, f"Collection not found: {slug}")
    return collection


@route("POST", "/api/collections")
def create_collection(hub: Hub, request: Request) -> Response:
    body = request.json()
    hub.check_owner(body["namespace"], request.user)
    for name in ("title", "description"):
        if len(body.get(name) or "") > LIMITS[name]:
            raise Refusal(400, f'"{name}" length must be less than or equal to {LIMITS[name]} characters long')
    slug = f"{body['namespace']}/{body['title']}-{len(hub.collections):024x}"
    hub.collections[slug] = {
        "slug": slug, "title": body["title"], "description": body.get("description", ""), "items": [], "position": 0,
        "owner": {"name": body["namespace"]}, "private": body.get("private", False), "theme": "orange", "upvotes": 0,
        "lastUpdated": now(),
    }  # fmt: skip
    return Response.of(hub.collections[slug])


@route("GET", "/api/collections")
def collections(hub: Hub, request: Request) -> Response:
    """List the collections of an owner that the client may see, each with only its first items."""
    owner = request.query["owner"][0]
    visible = [
        {name: value for name, value in collection.items() if name != "position"} | {"items": collection["items"][:4]}
        for slug, collection in hub.collections.items()
        if slug.startswith(f"{owner}/") and (not collection["private"] or hub.may_write(slug, request.user))
    ]
    return Response.of(visible)


@route("GET", "/api/collections/<slug>")
def collection(hub: Hub, request: Request, slug: str) -> Response:
    return Response.of(_collection(hub, request, slug))


@route("POST", "/api/collections/<slug>/items")
def add_item(hub: Hub, request: Request, slug: str) -> Response:
    collection, body = _collection(hub, request, slug, write=True), request.json()
    item = {"id": body["item"]["id"], "type": body["item"]["type"]}
    hub.readable(f"{item['type']}s", item["id"], request.user)
    note = {"note": {"text": body["note"]}} if body.get("note") else {}
    number = len(collection["items"])
    collection["items"].append({"_id": f"{number:024x}", "position": number, **item, **note})
    return Response.of(collection)


@route("PATCH", "/api/collections/<slug>/items/(?P<item>[0-9a-f]+)")
def move_item(hub: Hub, request: Request, slug: str, item: str) -> Response:
    items = _collection(hub, request, slug, write=True)["items"]
    moved = next(entry for entry in items if entry["_id"] == item)
    items.remove(moved)
    items.insert(request.json()["position"], moved)
    return Response.of({"success": True, "data": moved})


# --- cards


def card_data(text: str) -> dict[str, Any]:
    """Return the metadata of a card; {} if it is missing or invalid."""
    match = re.match(r"---\s*\n(.*?)\n---\s*(\n|$)", text, re.DOTALL)
    try:
        data = yaml.safe_load(match[1]) if match else {}
    except yaml.YAMLError:
        return {}
    return data if isinstance(data, dict) else {}


@route("POST", "/api/validate-yaml")
def validate(hub: Hub, request: Request) -> Response:
    """Validate the fields of cards that this project uses most."""
    body = request.json()
    data = card_data(body["content"])
    rules: dict[str, Callable[[Any], bool]] = {
        "license": lambda value: value in LICENSES,
        "colorFrom": lambda value: value in COLORS,
        "colorTo": lambda value: value in COLORS,
        "language": lambda value: all(re.fullmatch("[a-z]{2,3}", code) for code in value),
        "configs": lambda value: len({config["config_name"] for config in value}) == len(value),
        "short_description": lambda value: len(value) <= 60,
    }
    invalid = [name for name, is_valid in rules.items() if name in data and not is_valid(data[name])]
    errors = [f'"{name}" is not valid: {data[name]!r}' for name in invalid]
    if body["content"].startswith("---") and not data:
        errors.append("The metadata is not a YAML mapping")
    document = {"errors": [{"message": text} for text in errors], "warnings": []}
    return Response.of(document, 400 if errors else 200)
