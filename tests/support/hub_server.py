"""A Hub on loopback with the API that huggingface_hub, datasets and evaluate use, over real HTTP.

Repositories of models, datasets and Spaces with commits, tags and pull requests; uploads as commits
and by the LFS protocol; downloads with ranges; card validation. All of it is in memory. Every
request is recorded, and rules make chosen ones fail. Not here: Xet (``used_here`` turns it off),
gated repositories, closed pull requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml  # type: ignore[import-untyped]
from loopback import Loopback

if TYPE_CHECKING:
    import pytest

TOKEN = "hf_of_the_tester"
MAIN = "refs/heads/main"
DATE = "2026-01-31T00:00:00.000Z"
# The file in new repositories that says which files go to large file storage, abbreviated.
# Of the list of frameworks that the Hub accepts in ``eval.yaml``. qabench is not in it yet.
FRAMEWORKS = ("inspect-ai", "mteb", "math-arena", "nemo-evaluator")
GIT_ATTRIBUTES = "".join(f"*.{end} filter=lfs diff=lfs merge=lfs -text\n" for end in ("parquet", "arrow", "npy", "zip"))


@dataclass(frozen=True)
class Blob:
    """A file of a tree: its git object, and for a large one the SHA-256 that its pointer has."""

    oid: str
    size: int
    sha256: str | None = None

    @property
    def etag(self) -> str:
        return self.sha256 or self.oid


@dataclass(frozen=True)
class Commit:
    """A commit of a whole tree. Its id depends on its content, parent and message."""

    tree: dict[str, Blob]
    parent: str | None
    title: str

    @property
    def id(self) -> str:
        content = [sorted((path, blob.oid) for path, blob in self.tree.items()), self.parent, self.title]
        return hashlib.sha1(json.dumps(content).encode()).hexdigest()


@dataclass
class Repo:
    """A repository; ``kind`` is "model", "dataset" or "space"."""

    kind: str
    id: str
    private: bool = False
    sdk: str | None = None
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    # titles; open until main has their commit
    pull_requests: list[str] = field(default_factory=list)
    authors: list[str] = field(default_factory=list)

    @property
    def tip(self) -> Commit:
        """Return the last commit of main."""
        return self.commits[self.refs[MAIN]]

    def commit(self, revision: str) -> Commit:
        """Return the commit that a branch, tag, full ref or commit id names."""
        names = (revision, f"refs/heads/{revision}", f"refs/tags/{revision}")
        id = next((self.refs[name] for name in names if name in self.refs), revision)
        if id not in self.commits:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.commits[id]

    def add(self, ref: str, commit: Commit) -> None:
        self.commits[commit.id] = commit
        self.refs[ref] = commit.id

    def history(self) -> list[Commit]:
        """Return the commits of main, latest first."""
        history = [self.tip]
        while (parent := history[-1].parent) is not None:
            history.append(self.commits[parent])
        return history


@dataclass
class Request:
    """A received request; ``user`` is None without a token."""

    method: str
    target: str
    headers: Any
    user: str | None
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)

    @property
    def line(self) -> str:
        return f"{self.method} {unquote(self.target)}"

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stream: Iterable[bytes] | None = None  # sent in place of the body, as it comes

    @classmethod
    def of(cls, data: Any, status: int = 200, **headers: str) -> Response:
        return cls(status, json.dumps(data).encode(), {"Content-Type": "application/json", **headers})


class Refusal(Exception):
    """An error response: its status, message and the Hub's error code."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.response = Response.of({"error": message}, status, **headers)


@dataclass
class Fault:
    """Which requests fail, and how.

    The ``nth`` request whose "METHOD /path" the pattern ``match`` is in, and the ``times - 1``
    after it, fail. ``status`` with ``headers`` and ``body`` replace the right answer.
    ``drop_request_after``: the connection breaks after so many bytes of the request's content.
    ``endless``: an answer that never ends, "silence", "slow headers", "slow" or "large".
    """

    match: str
    nth: int = 1
    times: int = 1
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    drop_request_after: int | None = None
    endless: str | None = None
    seen: int = 0

    def takes(self, line: str) -> bool:
        """Count the request if it matches; return whether it must fail."""
        self.seen += bool(re.search(self.match, line))
        return bool(re.search(self.match, line)) and self.nth <= self.seen < self.nth + self.times


class Hub(Loopback):
    """A Hub at ``url``, running while the context is open. Its user "tester" may write to
    ``organizations``.
    """

    protocol = "HTTP/1.1"

    def __init__(self, organizations: tuple[str, ...] = ("qabench",)) -> None:
        super().__init__()
        self.organizations = organizations
        self.frameworks = set(FRAMEWORKS)
        self.repos: dict[tuple[str, str], Repo] = {}
        self.contents: dict[str, bytes] = {}  # by git object id, or SHA-256 of a large file
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.outside: list[str] = []
        self.lock = threading.RLock()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a client in a separate process; its requests elsewhere end up
        in ``outside``.
        """
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.url)
        return {"HF_ENDPOINT": self.url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **proxies}

    def used_here(self, patch: pytest.MonkeyPatch) -> None:
        """Make it the Hub of huggingface_hub in this process, which the tests' settings keep
        offline.
        """
        from huggingface_hub import constants

        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(constants, "ENDPOINT", self.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", self.url + "/{repo_id}/resolve/{revision}/{filename}")
        patch.setenv("HF_TOKEN", TOKEN)

    def fail(self, match: str, **how: Any) -> None:
        """Add a rule by which requests fail; see ``Fault``. The first matching rule decides."""
        self.faults.append(Fault(match, **how))

    def lines(self, *methods: str) -> list[str]:
        """Return "METHOD /path" of the requests with these methods, or of all."""
        return [request.line for request in self.requests if not methods or request.method in methods]

    def repo(self, kind: str, id: str) -> Repo:
        """Return a repository; ``kind`` may be plural, as in addresses."""
        if (repo := self.repos.get((kind.removesuffix("s"), id))) is None:
            raise Refusal(404, "Repository not found", "RepoNotFound")
        return repo

    def writable(self, kind: str, id: str, user: str | None) -> Repo:
        self.check_owner(id, user)
        return self.repo(kind, id)

    def check_owner(self, id: str, user: str | None) -> None:
        if user is None or id.split("/")[0] not in (user, *self.organizations):
            raise Refusal(403 if user else 401, f"You don't have the rights to write to {id}")

    def regular(self, content: bytes) -> Blob:
        oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        self.contents[oid] = content
        return Blob(oid, len(content))

    def response(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        for route_method, pattern, function in _ROUTES:
            if route_method == method and (match := pattern.fullmatch(request.path)):
                groups = {name: unquote(text) for name, text in match.groupdict().items() if text is not None}
                try:
                    return function(self, request, **groups)
                except Refusal as refusal:
                    return refusal.response
                # 400, because clients would try again and again after 500
                except Exception as error:
                    traceback.print_exc()
                    return Refusal(400, f"The test Hub itself failed: {type(error).__name__}: {error}").response
        return Refusal(404, f"The test Hub does not know {request.method} {request.path}").response

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.path.startswith("http://") or request.command == "CONNECT":
            self.outside.append(f"{request.command} {request.path}")
            request.close_connection = True
            return request.send_error(403)
        user = "tester" if request.headers.get("Authorization") == f"Bearer {TOKEN}" else None
        received = Request(request.command, request.path, request.headers, user)
        with self.lock:
            self.requests.append(received)
            fault = next((fault for fault in self.faults if fault.takes(received.line)), None) or Fault("")
        length, limit = int(request.headers.get("Content-Length") or 0), fault.drop_request_after
        received.body = request.rfile.read(min(length, limit or length))
        if limit is not None:
            return request.connection.shutdown(socket.SHUT_RDWR)
        if fault.endless:
            return _answer_endlessly(request, fault.endless)
        response = Response(fault.status, fault.body, fault.headers) if fault.status else self.response(received)
        request.send_response(response.status)
        size = {"Content-Length": str(len(response.body))} if response.stream is None else {"Connection": "close"}
        for name, value in {**response.headers, **size}.items():
            request.send_header(name, value)
        request.end_headers()
        for part in [] if request.command == "HEAD" else response.stream or [response.body]:
            request.wfile.write(part)
            request.wfile.flush()


def _answer_endlessly(request: BaseHTTPRequestHandler, answer: str) -> None:
    """Send nothing, slow headers, a slow body or a large one, until the client goes away."""
    parts = {"silence": b"", "slow headers": b"A: b\r\n", "slow": b"1,", "large": b"1," * 5000}
    starts = {"silence": b"", "slow headers": b"HTTP/1.1 200 OK\r\n"}
    request.wfile.write(starts.get(answer, b"HTTP/1.1 200 OK\r\n\r\n["))
    while True:
        request.wfile.write(parts[answer])
        request.wfile.flush()
        time.sleep(0.02)


Answer = Callable[..., Response]
_ROUTES: list[tuple[str, re.Pattern[str], Answer]] = []
# Shorthands in patterns; what a group matches is unquoted.
_NAMES = {
    "<repo>": r"(?P<kind>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)",
    "<git>": r"(?:(?P<kind>datasets|spaces)/)?(?P<id>[^/]+/[^/]+?)",
    "<revision>": r"(?P<revision>[^/]+)",
    "<slug>": r"(?P<slug>[^/]+/[^/]+)",
    "<sha256>": r"(?P<sha256>[0-9a-f]{64})",
}


def route(method: str, pattern: str) -> Callable[[Answer], Answer]:
    """Register a function for requests with this method whose whole path matches."""
    for name, regex in _NAMES.items():
        pattern = pattern.replace(name, regex)

    def register(answer: Answer) -> Answer:
        _ROUTES.append((method, re.compile(pattern), answer))
        return answer

    return register


@route("GET", "/api/whoami-v2")
def whoami(hub: Hub, request: Request) -> Response:
    if request.user is None:
        raise Refusal(401, "Invalid credentials in Authorization header")
    role = {"accessToken": {"displayName": "test", "role": "write"}}
    return Response.of({"type": "user", "name": request.user, "orgs": [], "auth": role})


@route("POST", "/api/repos/create")
def create(hub: Hub, request: Request) -> Response:
    body = request.json()
    kind, id, sdk = body.get("type", "model"), f"{body['organization'] or request.user}/{body['name']}", body.get("sdk")
    hub.check_owner(id, request.user)
    answer = {"url": f"{hub.url}/{id if kind == 'model' else f'{kind}s/{id}'}", "name": id, "id": id}
    if (kind, id) in hub.repos:
        return Response.of({"error": f"You already created this {kind} repo: {id}", **answer}, 409)
    repo = hub.repos[kind, id] = Repo(kind, id, body.get("visibility") == "private", sdk)
    files = {".gitattributes": GIT_ATTRIBUTES} | ({"README.md": f"---\ntitle: new\nsdk: {sdk}\n---\n"} if sdk else {})
    repo.add(MAIN, Commit({path: hub.regular(text.encode()) for path, text in files.items()}, None, "initial commit"))
    return Response.of(answer)


@route("GET", "/api/<repo>")
@route("GET", "/api/<repo>/revision/<revision>")
def info(hub: Hub, request: Request, kind: str, id: str, revision: str = "main") -> Response:
    repo = hub.repo(kind, id)
    commit = repo.commit(revision)
    card = commit.tree.get("README.md")
    data = card_data(hub.contents[card.etag].decode()) if card else {}
    document: dict[str, Any] = {
        "_id": commit.id[:24], "id": id, "author": id.split("/")[0], "sha": commit.id, "private": repo.private,
        "createdAt": DATE, "lastModified": DATE, "gated": False, "disabled": False, "downloads": 0, "likes": 0,
        "tags": data.get("tags", []), "cardData": data, "sdk": repo.sdk,
        "siblings": [{"rfilename": path} for path in sorted(commit.tree)],
    }  # fmt: skip
    return Response.of(document)


@route("GET", "/api/<repo>/tree/<revision>(/(?P<folder>.+))?")
def tree(hub: Hub, request: Request, kind: str, id: str, revision: str, folder: str = "") -> Response:
    commit = hub.repo(kind, id).commit(revision)
    prefix = f"{folder}/" if folder else ""
    below = [path[len(prefix) :] for path in commit.tree if path.startswith(prefix)]
    if folder and not below:
        raise Refusal(404, f"{folder} does not exist on {revision}", "EntryNotFound")
    names = sorted({*below, *(path[:i] for path in below for i, letter in enumerate(path) if letter == "/")})
    recursive = request.query.get("recursive", ["false"])[0].lower() in ("1", "true")
    return Response.of([_entry(commit, prefix + name) for name in names if recursive or "/" not in name])


def _entry(commit: Commit, path: str) -> dict[str, Any]:
    """Return a file or folder of a listing."""
    if (blob := commit.tree.get(path)) is None:
        return {"type": "directory", "oid": commit.id, "size": 0, "path": path}
    large = {"lfs": {"oid": blob.sha256, "size": blob.size, "pointerSize": 130}} if blob.sha256 else {}
    return {"type": "file", "oid": blob.oid, "size": blob.size, "path": path, **large}


@route("GET", "/api/<repo>/refs")
def refs(hub: Hub, request: Request, kind: str, id: str) -> Response:
    rows: dict[str, list[dict[str, str]]] = {"branches": [], "tags": [], "converts": []}
    for ref, target in hub.repo(kind, id).refs.items():
        for name, prefix in (("branches", "refs/heads/"), ("tags", "refs/tags/")):
            if ref.startswith(prefix):
                rows[name].append({"name": ref.removeprefix(prefix), "ref": ref, "targetCommit": target})
    return Response.of(rows)


@route("POST", "/api/<repo>/tag/<revision>")
def tag(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    repo, ref = hub.writable(kind, id, request.user), f"refs/tags/{request.json()['tag']}"
    repo.refs[ref] = repo.commit(revision).id
    return Response.of({"ref": ref})


@route("POST", "/api/<repo>/preupload/<revision>")
def preupload(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    """Say how to upload each file, and the digest of the current one, so that clients skip equal
    files.
    """
    files = hub.writable(kind, id, request.user).commit(revision).tree
    attributes = hub.contents[files[".gitattributes"].oid].decode() if ".gitattributes" in files else ""
    patterns = [line.split()[0] for line in attributes.splitlines() if "filter=lfs" in line]
    rows = []
    for path, sample in ((file["path"], base64.b64decode(file["sample"])) for file in request.json()["files"]):
        large = b"\0" in sample or any(fnmatch(path.rpartition("/")[2], pattern) for pattern in patterns)
        oid = files[path].etag if path in files else None
        rows.append({"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid})
    return Response.of({"files": rows})


@route("POST", r"/<git>\.git/info/lfs/objects/batch")
def batch(hub: Hub, request: Request, kind: str = "models", *, id: str) -> Response:
    """Say where to upload each large file; nowhere if it already exists."""
    hub.writable(kind, id, request.user)
    objects = [{"oid": file["oid"], "size": file["size"]} for file in request.json()["objects"]]
    for file in objects:
        if file["oid"] not in hub.contents:
            file["actions"] = {"upload": {"href": f"{hub.url}/upload/{file['oid']}"}}
    return Response.of({"transfer": "basic", "objects": objects})


@route("PUT", "/upload/<sha256>")
def upload(hub: Hub, request: Request, sha256: str) -> Response:
    if hashlib.sha256(request.body).hexdigest() != sha256:
        raise Refusal(400, "The content is not of the digest announced")
    hub.contents[sha256] = request.body
    return Response()


@route("POST", "/api/<repo>/commit/<revision>")
def commit(hub: Hub, request: Request, kind: str, id: str, revision: str) -> Response:
    """Create a commit, even if it changes nothing (clients should not send such commits)."""
    repo = hub.writable(kind, id, request.user)
    header, *changes = (json.loads(line) for line in request.body.splitlines())
    with hub.lock:
        parent = repo.commit(revision)
        files, url = dict(parent.tree), None
        ref = revision if revision.startswith("refs/pr/") else MAIN
        for change in changes:
            key, value = change["key"], change["value"]
            if key == "file":
                files[value["path"]] = hub.regular(base64.b64decode(value["content"]))
            elif key == "lfsFile":
                sha256, size = value["oid"], len(hub.contents[value["oid"]])
                pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
                files[value["path"]] = Blob(hub.regular(pointer.encode()).oid, size, sha256)
            else:  # "deletedFile"
                del files[value["path"]]
        if kind == "datasets" and "eval.yaml" in files:
            content = yaml.safe_load(hub.contents[files["eval.yaml"].etag])
            if content["evaluation_framework"] not in hub.frameworks:
                raise Refusal(400, f"Invalid eval.yaml: evaluation_framework must be one of {sorted(hub.frameworks)}")
        title = header["value"]["summary"]
        if "create_pr" in request.query:
            repo.pull_requests.append(title)
            repo.authors.append(request.user or "")
            number = len(repo.pull_requests)
            ref, url = f"refs/pr/{number}", f"{hub.url}/{id}/discussions/{number}"
        new = Commit(files, parent.id, title)
        repo.add(ref, new)
    place = f"{hub.url}/{id}/commit/{new.id}"
    return Response.of({"success": True, "commitOid": new.id, "commitUrl": place, "pullRequestUrl": url})


@route("GET", "/api/<repo>/discussions")
def discussions(hub: Hub, request: Request, kind: str, id: str) -> Response:
    """Return the open pull requests of an author on one page."""
    repo = hub.repo(kind, id)
    (author,) = request.query["author"]
    merged = {commit.id for commit in repo.history()}
    rows = []
    for number, (title, opened_by) in enumerate(zip(repo.pull_requests, repo.authors, strict=True), start=1):
        if opened_by == author and repo.refs[f"refs/pr/{number}"] not in merged:
            row: dict[str, Any] = {"num": number, "title": title, "status": "open", "isPullRequest": True}
            row |= {"repo": {"name": id, "type": kind.removesuffix("s")}, "author": {"name": author}}
            rows.append(row | {"createdAt": DATE})
    return Response.of({"count": len(rows), "start": 0, "discussions": rows})


@route("GET", "/api/datasets/(?P<id>[^/]+/[^/]+)/leaderboard")
def leaderboard(hub: Hub, request: Request, id: str) -> Response:
    """Return the entries of all models for the tasks in the dataset's ``eval.yaml``, ranked by task.

    Those of open pull requests are shown, too.
    """
    files = hub.repo("datasets", id).tip.tree
    if "eval.yaml" not in files:
        raise Refusal(404, "This dataset has no leaderboard", "EntryNotFound")
    entries: dict[str, list[dict[str, Any]]] = {}
    for task in yaml.safe_load(hub.contents[files["eval.yaml"].etag])["tasks"]:
        entries[task["id"]] = []
    for repo in list(hub.repos.values()):
        if repo.kind == "model":
            for row in _eval_results(hub, repo, id):
                if row["task"] in entries:
                    entries[row["task"]].append(row)
    ranked = []
    for rows in entries.values():
        rows.sort(key=lambda row: -row["value"])
        ranked += [row | {"rank": rank} for rank, row in enumerate(rows, start=1)]
    return Response.of(ranked)


def _eval_results(hub: Hub, repo: Repo, dataset: str) -> Iterator[dict[str, Any]]:
    """Yield a model's results on a dataset: those of main, and those of open pull requests."""
    author = {"name": repo.id.split("/")[0], "type": "user", "fullname": "", "avatarUrl": ""}
    merged = {commit.id for commit in repo.history()}
    revisions: dict[str, int | None] = {MAIN: None}
    for number in range(1, len(repo.pull_requests) + 1):
        if repo.refs[f"refs/pr/{number}"] not in merged:
            revisions[f"refs/pr/{number}"] = number
    shown = set()
    for revision, pull_request in revisions.items():
        for path, blob in repo.commit(revision).tree.items():
            if not fnmatch(path, ".eval_results/*.yaml"):
                continue
            for row in yaml.safe_load(hub.contents[blob.etag]):
                key = (row["dataset"]["task_id"], row["value"])
                if row["dataset"]["id"] == dataset and key not in shown:
                    shown.add(key)
                    yield {
                        "modelId": repo.id, "task": row["dataset"]["task_id"], "value": row["value"],
                        "filename": path, "verified": False, "source": row.get("source"), "author": author,
                        "pullRequest": pull_request, "notes": row.get("notes"),
                    }  # fmt: skip


@route("GET", "/<git>/resolve/<revision>/(?P<path>.+)")
def resolve(hub: Hub, request: Request, kind: str = "models", *, id: str, revision: str, path: str) -> Response:
    """Return a file's bytes or a range of them, with metadata for the client."""
    commit = hub.repo(kind, id).commit(revision)
    if (blob := commit.tree.get(path)) is None:
        raise Refusal(404, "Entry not found", "EntryNotFound")
    content = hub.contents[blob.etag]
    headers = {"X-Repo-Commit": commit.id, "ETag": f'"{blob.etag}"', "Accept-Ranges": "bytes"}
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range") or "")
    if not match:
        return Response(200, content, headers)
    start, stop = int(match[1]), min(int(match[2] or len(content)) + 1, len(content))
    return Response(206, content[start:stop], headers | {"Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"})


def card_data(text: str) -> dict[str, Any]:
    """Return the metadata of a card; {} if it is missing."""
    match = re.match(r"---\s*\n(.*?)\n---\s*(\n|$)", text, re.DOTALL)
    return yaml.safe_load(match[1]) if match else {}


@route("POST", "/api/validate-yaml")
def validate(hub: Hub, request: Request) -> Response:
    return Response.of({"errors": [], "warnings": []})
