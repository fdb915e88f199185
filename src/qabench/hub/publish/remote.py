"""The current state of a repository on the Hub."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qabench.hub.build import repository
from qabench.io.limits import json_of

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

Kind = Literal["dataset", "space"]
# Files that the Hub adds to a new repository.
INITIAL = {"dataset": {".gitattributes"}, "space": {".gitattributes", "README.md"}}


@dataclass(frozen=True, slots=True)
class Remote:
    """The content of a repository on the Hub.

    Attributes:
        head: the commit of the branch main, or None.
        private: whether the repository is private.
        files: the files of ``head`` by path.
        manifest: the manifest that qabench published last, or None.
        tagged: the files of the commit with the version's tag; None without such a tag.
    """

    head: str | None
    private: bool
    files: dict[str, RepoFile] = field(default_factory=dict)
    manifest: dict[str, Any] | None = None
    tagged: dict[str, RepoFile] | None = None

    def is_foreign(self, kind: Kind) -> bool:
        """Whether it has files although qabench did not publish it."""
        return self.manifest is None and bool(self.files.keys() - INITIAL[kind])


def read(api: HfApi, repo_id: str, kind: Kind, tag: str) -> Remote | None:
    """The repository on the Hub; None if it does not exist or the token has no access.

    Raises:
        Exception: the errors of huggingface_hub and httpx2 if the Hub cannot be reached, or rejects the request.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        info = api.repo_info(repo_id, repo_type=kind)
    except RepositoryNotFoundError:
        return None
    head = getattr(info, "sha", None)
    if head is None:
        return Remote(None, bool(info.private))
    files = _files(api, repo_id, kind, head)
    manifest = _manifest(api, repo_id, kind, head) if repository.MANIFEST in files else None
    refs = api.list_repo_refs(repo_id, repo_type=kind)
    commit = next((ref.target_commit for ref in refs.tags if ref.name == tag), None)
    tagged = None
    if commit is not None:
        tagged = files if commit == head else _files(api, repo_id, kind, commit)
    return Remote(head, bool(info.private), files, manifest, tagged)


def same_content(path: Path, file: RepoFile) -> bool:
    """Whether a local file equals the Hub's, by the digest on the Hub: SHA-256 for LFS, else git's."""
    if path.stat().st_size != (file.lfs.size if file.lfs else file.size):
        return False
    with path.open("rb") as content:
        if file.lfs:
            return hashlib.file_digest(content, "sha256").hexdigest() == file.lfs.sha256
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == file.blob_id


def _files(api: HfApi, repo_id: str, kind: Kind, revision: str) -> dict[str, RepoFile]:
    from huggingface_hub.hf_api import RepoFile

    tree = api.list_repo_tree(repo_id, repo_type=kind, revision=revision, recursive=True)
    return {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}


def _manifest(api: HfApi, repo_id: str, kind: Kind, revision: str) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory(prefix="qabench-manifest-") as folder:  # not into the user's cache
        path = api.hf_hub_download(
            repo_id, repository.MANIFEST, repo_type=kind, revision=revision, cache_dir=folder, force_download=True
        )
        try:
            manifest = json_of(Path(path).read_bytes())
        except ValueError:
            return None
    ours = isinstance(manifest, dict) and str(manifest.get("format")).startswith("qabench ")
    return manifest if ours and isinstance(manifest.get("files"), dict) else None
