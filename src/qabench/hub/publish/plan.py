"""The changes on the Hub that publishing a folder would make, and whether they are allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qabench.errors import QabenchError
from qabench.hub.build import repository
from qabench.hub.publish.remote import Kind, Remote, same_content

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoFile

Change = Literal["added", "changed", "deleted", "unchanged"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file of a repository and its change; ``size`` in bytes and ``sha256`` are None for a deleted file."""

    path: str
    change: Change
    size: int | None = None
    sha256: str | None = None


def plan(folder: Path, kind: Kind, remote: Remote | None, tag: str, *, private: bool = False) -> list[FileChange]:
    """The files of ``folder``, and those that it no longer has, with the change that publishing makes to each.

    A version is published once. If its tag exists, the folder must equal the tagged content, and nothing changes; other
    content needs another version. Files that others added to a repository of qabench are kept.

    Args:
        folder: the folder to publish, with its manifest.
        kind: "dataset" or "space".
        remote: the repository on the Hub; None if it does not exist.
        tag: the tag of the version.
        private: whether only the owner may see the files.

    Raises:
        QabenchError: the repository on the Hub was not published by qabench, or is public despite ``private``; the tag
            has other content; or configs would be lost.
    """
    local = repository.digests(folder, manifest=True)
    if remote is None:
        return [FileChange(path, "added", **local[path]) for path in sorted(local)]
    if remote.is_foreign(kind):
        others = ", ".join(sorted(remote.files)[:3])
        raise QabenchError(
            f"the existing repository was not published by qabench (it contains {others}); it was not changed. "
            "Use another --org, or rename that repository on the Hub"
        )
    if private and not remote.private:
        raise QabenchError("it is public, but --private was given; first make it private in its settings on the Hub")
    if remote.tagged is not None:
        changes = _compare(folder, local, remote.tagged, remote.manifest)
        if differing := [file.path for file in changes if file.change != "unchanged"]:
            raise QabenchError(
                f"{tag} is published with other content: {_few(differing)}. A published version never changes: "
                "increase the version of the package, unless the files differ only because of other versions of the "
                f"libraries listed in {repository.MANIFEST}"
            )
        return changes
    if lost := sorted(_configs(remote.manifest) - _configs(_manifest(folder))):
        raise QabenchError(
            f"the Hub has configs whose data is missing here: {_few(lost)}; run `qabench fetch`, or set QABENCH_MIRROR"
        )
    return _compare(folder, local, remote.files, remote.manifest)


def _compare(
    folder: Path,
    local: Mapping[str, dict[str, Any]],
    there: Mapping[str, RepoFile],
    manifest: Mapping[str, Any] | None,
) -> list[FileChange]:
    changes = []
    for path, digest in local.items():
        change: Change = "added"
        if path in there:
            change = "unchanged" if same_content(folder / path, there[path]) else "changed"
        changes.append(FileChange(path, change, **digest))
    ours = (manifest or {}).get("files", {})
    changes += [FileChange(path, "deleted") for path in ours if path in there and path not in local]
    return sorted(changes, key=lambda file: file.path)


def _manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / repository.MANIFEST).read_text(encoding="utf-8")))


def _configs(manifest: Mapping[str, Any] | None) -> set[str]:
    return set((manifest or {}).get("configs", ()))


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
