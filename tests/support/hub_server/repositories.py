"""Accounts; creating, describing, listing and tagging repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

from hub_server.cards import card_data
from hub_server.routes import Refusal, Request, Response, route
from hub_server.store import Blob, Commit, Repo, pointer

if TYPE_CHECKING:
    from hub_server.hub import Hub


@route("GET", "/api/whoami-v2")
def whoami(hub: Hub, request: Request) -> Response:
    if request.user is None:
        raise Refusal(401, "Invalid credentials in Authorization header")
    organizations = [{"type": "org", "name": name, "roleInOrg": "admin"} for name in hub.organizations]
    role = {"accessToken": {"displayName": "test", "role": "write"}}
    return Response.of({"type": "user", "name": request.user, "orgs": organizations, "auth": role})


@route("POST", "/api/repos/create")
def create(hub: Hub, request: Request) -> Response:
    asked = request.json()
    if request.user is None:
        raise Refusal(401, "Invalid username or password.")
    kind, id_ = asked.get("type", "model"), f"{asked['organization'] or request.user}/{asked['name']}"
    if not hub.may_write(id_, request.user):
        raise Refusal(403, f"You don't have the rights to create a {kind} under the namespace {id_.split('/')[0]}")
    with hub.lock:
        known = hub.store.repos.get((kind, id_))
        repo = known or hub.store.create(kind, id_, asked.get("visibility") == "private", asked.get("sdk"))
    answer = {"url": f"{hub.url}/{repo.path}", "name": id_, "id": id_}
    if known:
        return Response.of({"error": f"You already created this {kind} repo: {id_}", **answer}, 409)
    return Response.of(answer)


@route("DELETE", "/api/repos/delete")
def delete(hub: Hub, request: Request) -> Response:
    asked = request.json()
    kind, id_ = asked.get("type", "model"), f"{asked['organization'] or request.user}/{asked['name']}"
    del hub.store.repos[hub.writable(f"{kind}s", id_, request.user).kind, id_]
    return Response.of({})


@route("PUT", "/api/<repo>/settings")
def settings(hub: Hub, request: Request, kind: str, id: str) -> Response:
    repo = hub.writable(kind, id, request.user)
    repo.private = request.json().get("visibility", "public") == "private"
    return Response.of({"private": repo.private})


@route("GET", "/api/<repo>/auth-check(/write)?")
def auth_check(hub: Hub, request: Request, kind: str, id: str) -> Response:
    (hub.writable if request.path.endswith("/write") else hub.readable)(kind, id, request.user)
    return Response.of({})


@route("GET", "/api/<repo>")
@route("GET", "/api/<repo>/revision/<revision>")
def info(hub: Hub, request: Request, kind: str, id: str, revision: str = "main") -> Response:
    repo = hub.readable(kind, id, request.user)
    commit = hub.commit(repo, revision)
    card = commit.tree.get("README.md")
    data = card_data(hub.store.contents[card.etag].decode()) if card else {}
    everything: dict[str, Any] = {
        "_id": commit.id[:24], "id": id, "author": id.split("/")[0], "sha": commit.id, "private": repo.private,
        "createdAt": repo.created, "lastModified": commit.date, "gated": False, "disabled": False, "downloads": 0,
        "likes": 0, "tags": data.get("tags", []), "cardData": data, "sdk": repo.sdk,
        "siblings": [_sibling(path, blob, request.flag("blobs")) for path, blob in sorted(commit.tree.items())],
    }  # fmt: skip
    if wanted := request.query.get("expand"):
        everything = {name: everything[name] for name in ("_id", "id", *wanted)}
    return Response.of(everything)


def _sibling(path: str, blob: Blob, details: bool) -> dict[str, Any]:
    if not details:
        return {"rfilename": path}
    large = {"sha256": blob.sha256, "size": blob.size, "pointerSize": _pointer_size(blob)}
    return {"rfilename": path, "size": blob.size, "blobId": blob.oid, **({"lfs": large} if blob.sha256 else {})}


def _pointer_size(blob: Blob) -> int:
    return len(pointer(blob.sha256 or "", blob.size))


@route("GET", "/api/<repo>/tree/<revision>(/(?P<folder>.+))?")
def tree(hub: Hub, request: Request, kind: str, id: str, revision: str, folder: str = "") -> Response:
    repo = hub.readable(kind, id, request.user)
    commit = hub.commit(repo, revision)
    prefix = f"{folder}/" if folder else ""
    below = {path[len(prefix) :]: blob for path, blob in commit.tree.items() if path.startswith(prefix)}
    if folder and not below:
        raise Refusal(404, f"{folder} does not exist on {revision}", "EntryNotFound")
    folders = {path[:i] for path in below for i, letter in enumerate(path) if letter == "/"}
    names = sorted({*below, *folders})
    if not request.flag("recursive"):
        names = [name for name in names if "/" not in name]
    start = int(request.query.get("cursor", ["0"])[0])
    page = names[start : start + hub.page_size]
    listed = [entry(repo, commit, prefix + name, request.flag("expand")) for name in page]
    if start + hub.page_size >= len(names):
        return Response.of(listed)
    flags = "&".join(f"{name}={request.flag(name)}" for name in ("recursive", "expand"))
    following = f"{hub.url}{request.path}?{flags}&cursor={start + hub.page_size}"
    return Response.of(listed, Link=f'<{following}>; rel="next"')


@route("POST", "/api/<repo>/paths-info/<revision>")
def paths_info(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    repo = hub.readable(kind, id, request.user)
    commit = hub.commit(repo, revision)
    form = parse_qs(request.body.decode())
    folders = {str(path).rpartition("/")[0] for path in commit.tree}
    known = [path for path in form.get("paths", []) if path in commit.tree or path in folders]
    return Response.of([entry(repo, commit, path, form.get("expand") == ["true"]) for path in known])


def entry(repo: Repo, commit: Commit, path: str, expand: bool) -> dict[str, Any]:
    """A file or folder in a listing."""
    blob = commit.tree.get(path)
    described: dict[str, Any] = {"type": "directory", "oid": commit.id, "size": 0, "path": path}
    if blob:
        described |= {"type": "file", "oid": blob.oid, "size": blob.size}
        if blob.sha256:
            described["lfs"] = {"oid": blob.sha256, "size": blob.size, "pointerSize": _pointer_size(blob)}
    if expand:
        last = repo.last_change(commit, path)
        described["lastCommit"] = {"id": last.id, "title": last.title, "date": last.date}
    return described


@route("GET", "/api/<repo>/commits/<revision>")
def history(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    repo = hub.readable(kind, id, request.user)
    return Response.of(
        [
            {
                "id": commit.id, "title": commit.title, "message": commit.description, "date": commit.date,
                "authors": [{"user": commit.author}],
            }
            for commit in repo.history(hub.commit(repo, revision))
        ]
    )  # fmt: skip


@route("GET", "/api/<repo>/refs")
def refs(hub: Hub, request: Request, kind: str, id: str) -> Response:
    repo = hub.readable(kind, id, request.user)
    kinds = {"branches": "refs/heads/", "tags": "refs/tags/", "converts": "refs/convert/", "pullRequests": "refs/pr/"}
    return Response.of(
        {
            name: [
                {"name": ref.removeprefix(start), "ref": ref, "targetCommit": target}
                for ref, target in repo.refs.items()
                if ref.startswith(start)
            ]
            for name, start in kinds.items()
        }
    )


@route("POST", "/api/<repo>/(?P<what>tag|branch)/<revision>")
def name(hub: Hub, request: Request, kind: str, id: str, what: str, revision: str) -> Response:
    """Names a commit: a tag has its name in the content and the revision in the address, a branch the other way."""
    repo = hub.writable(kind, id, request.user)
    asked = request.json()
    ref = f"refs/tags/{asked['tag']}" if what == "tag" else f"refs/heads/{revision}"
    with hub.lock:
        if ref in repo.refs:
            raise Refusal(409, f"{what} already exists: {ref}")
        repo.refs[ref] = hub.commit(repo, revision if what == "tag" else asked.get("startingPoint", "main")).id
    return Response.of({"ref": quote(ref)})


@route("DELETE", "/api/<repo>/(?P<what>tag|branch)/<revision>")
def unname(hub: Hub, request: Request, kind: str, id: str, what: str, revision: str) -> Response:
    repo = hub.writable(kind, id, request.user)
    if repo.refs.pop(f"refs/{'tags' if what == 'tag' else 'heads'}/{revision}", None) is None:
        raise Refusal(404, f"{what} does not exist: {revision}", "RevisionNotFound")
    return Response.of({})
