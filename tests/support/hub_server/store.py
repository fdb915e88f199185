"""Repositories as in git: commits of whole trees, named by refs; and contents, named by digest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

MAIN = "refs/heads/main"
LARGE_PATTERNS = ("*.parquet", "*.arrow", "*.bin", "*.gz", "*.npy", "*.pt", "*.safetensors", "*.zip")
# The file in new repositories that says which files go to large file storage, abbreviated.
GIT_ATTRIBUTES = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in LARGE_PATTERNS)


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class Blob:
    """A file of a tree: its git object, and for a large one the SHA-256 that its pointer holds."""

    oid: str
    size: int
    sha256: str | None = None

    @property
    def etag(self) -> str:
        return self.sha256 or self.oid


@dataclass(frozen=True)
class Commit:
    """A commit. Its id depends on its content, parent and message, not on the time."""

    tree: dict[str, Blob]
    parent: str | None
    title: str
    date: str = field(default_factory=now, compare=False)

    @property
    def id(self) -> str:
        content = [sorted((path, blob.oid) for path, blob in self.tree.items()), self.parent, self.title]
        return hashlib.sha1(json.dumps(content).encode()).hexdigest()


@dataclass
class Repo:
    """One repository; ``kind`` is "model", "dataset" or "space"."""

    kind: str
    id: str
    private: bool = False
    sdk: str | None = None
    created: str = field(default_factory=now)
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    discussions: list[dict[str, object]] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Return its path on the Hub."""
        return self.id if self.kind == "model" else f"{self.kind}s/{self.id}"

    @property
    def tip(self) -> Commit:
        """Return the last commit of main."""
        return self.commits[self.refs[MAIN]]

    def resolve(self, revision: str) -> Commit | None:
        """Return the commit that a branch, tag, full ref or commit id names."""
        for ref in (revision, f"refs/heads/{revision}", f"refs/tags/{revision}"):
            if ref in self.refs:
                return self.commits[self.refs[ref]]
        return self.commits.get(revision)

    def add(self, ref: str, commit: Commit) -> None:
        self.commits[commit.id] = commit
        self.refs[ref] = commit.id

    def history(self, commit: Commit) -> list[Commit]:
        """Return the commit and its ancestors, latest first."""
        history = [commit]
        while (parent := history[-1].parent) is not None:
            history.append(self.commits[parent])
        return history


class Store:
    """All repositories and the contents of their files."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.contents: dict[str, bytes] = {}  # git object id, or SHA-256 of a large file

    def create(self, kind: str, id: str, private: bool, sdk: str | None) -> Repo:
        repo = self.repos[kind, id] = Repo(kind, id, private, sdk)
        files = {".gitattributes": GIT_ATTRIBUTES}
        if sdk:
            files["README.md"] = f"---\ntitle: {id.split('/')[1]}\nsdk: {sdk}\n---\n"
        tree = {path: self.regular(text.encode()) for path, text in files.items()}
        repo.add(MAIN, Commit(tree, None, "initial commit"))
        return repo

    def regular(self, content: bytes) -> Blob:
        oid = git_oid(content)
        self.contents[oid] = content
        return Blob(oid, len(content))

    def large(self, sha256: str) -> Blob | None:
        """Return the file of a large content; None if it was not uploaded."""
        if (content := self.contents.get(sha256)) is None:
            return None
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n"
        return Blob(git_oid(pointer.encode()), len(content), sha256)
