"""Publishing to the Hub: datasets as ``qabench build`` writes them, metrics as Spaces, a collection of both.

Only repositories that pass the checks of ``qabench.hub.staging`` are sent. Each repository gets one commit with all
changes, and the tag of the package's version; if nothing changed, nothing is sent. After an error, a second call
continues the first.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qabench.errors import InputError, QabenchError
from qabench.evaluation.signature import version
from qabench.hub.build import MANIFEST, digests
from qabench.hub.cards import check_accepted
from qabench.hub.client import HubError, bounded_answers, hub_errors, require_token
from qabench.hub.staging import Kind, Staged, stage_dataset, stage_space
from qabench.io.limits import json_of
from qabench.loading_scripts import benchmark_names, dataset_table
from qabench.metrics import metric_names

if TYPE_CHECKING:
    from huggingface_hub import Collection, HfApi
    from huggingface_hub.hf_api import RepoFile

Item = tuple[str, str]
"""A kind, such as "dataset", and a repo_id."""
COLLECTION = "qabench"
NOT_TRIED = "not tried, because of the previous error"
# Files that the Hub adds to a new repository.
INITIAL = {"dataset": {".gitattributes"}, "space": {".gitattributes", "README.md"}}


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file of a repository and its change; ``size`` in bytes and ``sha256`` are None for a deleted file."""

    path: str
    change: Literal["added", "changed", "deleted", "unchanged"]
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one repository.

    Attributes:
        kind: "dataset" or "space".
        repo_id: its name on the Hub.
        state: "published": one commit, and the tag; "tagged": only the tag was missing; "unchanged"; in a dry run "to
            publish" or "to tag"; "skipped" or "failed", for ``reason``.
        tag: the tag of the version.
        commit: the new commit, or None.
        files: its files and the result for each; empty if unknown.
        reason: why it was skipped or failed; in a dry run, why it was not compared with the Hub.
        missing: the configs that are left out because their data is not available.
    """

    kind: Kind
    repo_id: str
    state: Literal["published", "tagged", "unchanged", "to publish", "to tag", "skipped", "failed"]
    tag: str
    commit: str | None = None
    files: tuple[FileChange, ...] = ()
    reason: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def changes(self) -> int:
        """Return the number of files that differ from the Hub's."""
        return sum(file.change != "unchanged" for file in self.files)


@dataclass(frozen=True, slots=True)
class Collected:
    """The result for the collection.

    Attributes:
        slug: its name on the Hub; None if it does not exist (yet).
        state: "created", "changed", "unchanged", or in a dry run "to create", "to change".
        items: this project's repositories in the collection, in order.
    """

    slug: str | None
    state: Literal["created", "changed", "unchanged", "to create", "to change"]
    items: list[Item]


@dataclass(frozen=True, slots=True)
class Published:
    """The result of ``publish``."""

    org: str
    endpoint: str
    dry_run: bool
    repositories: tuple[Outcome, ...]
    collection: Collected | None
    collection_error: str | None = None

    @property
    def ok(self) -> bool:
        """Return whether nothing failed; a skipped repository has not failed."""
        return self.collection_error is None and all(outcome.state != "failed" for outcome in self.repositories)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {**asdict(self), "ok": self.ok}


def publish(
    what: Literal["datasets", "metrics", "all"],
    org: str,
    *,
    private: bool = False,
    dry_run: bool = False,
    accept_licenses: bool = False,
    skip_missing: bool = False,
    out: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Published:
    """Publish datasets, metrics or both under an organization, on the Hub of HF_ENDPOINT with the token of HF_TOKEN.

    The tag is vVERSION, which ``evaluate.load(..., revision="VERSION")`` looks for. A version is published once: if the
    tag has other content, the repository is rejected until the package has another version. A repository that qabench
    did not write is rejected, too. The visibility is set when a repository is created, and not changed later.

    Args:
        what: "datasets", "metrics" or "all".
        org: an organization or a user.
        private: make new repositories and the collection private; an existing public repository is rejected.
        dry_run: build, check and compare with the Hub if it can be reached; send nothing.
        accept_licenses: the user has read the licenses of the data and will comply with them.
        skip_missing: publish datasets without the configs whose data is not available here, unless the Hub has them.
        out: a folder that keeps the published files, as datasets/ORG/NAME and spaces/ORG/NAME.
        progress: called with the number of repositories processed, and of all repositories.

    Returns:
        The result of each repository and of the collection; a failure of one does not affect the others.

    Raises:
        InputError: an invalid name, licenses that were not accepted, a folder that qabench did not write.
        QabenchError: the token is missing or invalid, or the Hub cannot be reached; nothing was done.
    """
    from huggingface_hub import HfApi

    datasets, spaces = _names(what, org)
    api = HfApi(library_name="qabench", library_version=version())
    with bounded_answers():
        if not dry_run:
            check_accepted([name for name in datasets if not dataset_table(name).restriction], accept_licenses)
            require_token(api)
            with hub_errors(api):
                api.whoami()
        publisher = _Publisher(api, f"v{version()}", private, dry_run)
        with (
            _output_folder(out) as root,
            closing(_staged(datasets, spaces, org, root, skip_missing)) as repositories,
        ):
            for done, staged in enumerate(repositories, 1):
                publisher.take(staged)
                if progress:
                    progress(done, len(datasets) + len(spaces))
        collection, problem = publisher.collect(org)
    return Published(org, api.endpoint, dry_run, tuple(publisher.outcomes), collection, problem)


def _names(what: str, org: str) -> tuple[list[str], list[str]]:
    """Return the benchmarks and the metrics to publish."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    if what not in ("datasets", "metrics", "all"):
        raise InputError(f"{what!r} cannot be published; allowed: datasets, metrics, all")
    datasets = benchmark_names() if what != "metrics" else []
    spaces = metric_names() if what != "datasets" else []
    try:
        if "/" in org or not org:
            raise HFValidationError("it must be an organization, without a repository")
        validate_repo_id(f"{org}/{max([*datasets, *spaces], key=len)}")
    except HFValidationError as error:
        raise InputError(f"--org is {org!r}, which is not a valid name on the Hub: {error}") from None
    return datasets, spaces


@contextmanager
def _output_folder(out: Path | None) -> Iterator[Path]:
    if out is None:
        with tempfile.TemporaryDirectory(prefix="qabench-publish-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an empty folder; it was not changed")
    yield out.absolute()


def _staged(
    datasets: list[str], spaces: list[str], org: str, root: Path, skip_missing: bool
) -> Generator[Staged, None, None]:
    """Yield the repositories one by one; Spaces are checked in other processes while datasets are built and sent."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        futures = [pool.submit(stage_space, name, org, root) for name in spaces]
        try:
            for name in datasets:
                yield stage_dataset(name, org, root, skip_missing=skip_missing)
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


class _Publisher:
    """Publishes one repository after the other, and stores their results and whether the Hub can be used."""

    def __init__(self, api: HfApi, tag: str, private: bool, dry_run: bool) -> None:
        self.api, self.tag, self.private, self.dry_run = api, tag, private, dry_run
        self.outcomes: list[Outcome] = []
        self.stopped: HubError | None = None

    def take(self, staged: Staged) -> None:
        """Publish a repository unless it was skipped or has problems, and add its outcome."""
        outcome = Outcome(staged.kind, staged.repo_id, "failed", self.tag, missing=staged.missing)
        if staged.skipped:
            outcome = replace(outcome, state="skipped", reason=staged.skipped)
        elif staged.problems:
            outcome = replace(outcome, reason="; ".join(staged.problems))
        elif self.stopped is None or self.dry_run:
            outcome = self._try(staged, outcome)
        else:
            outcome = replace(outcome, reason=NOT_TRIED)
        self.outcomes.append(outcome)

    def _try(self, staged: Staged, failed: Outcome) -> Outcome:
        try:
            if self.stopped:
                raise self.stopped
            return self._publish(staged)
        except HubError as error:
            self.stopped = error if error.stops else None
            if self.dry_run:  # the local files can be listed without the Hub
                reason = f"not compared with the Hub: {error}"
                return replace(failed, state="to publish", files=tuple(_plan(staged.folder, {}, {})), reason=reason)
            return replace(failed, reason=str(error))
        except QabenchError as error:
            return replace(failed, reason=str(error))

    def _publish(self, staged: Staged) -> Outcome:
        """Compare a repository with the Hub's; unless in a dry run, create it if needed, commit all changes and tag.

        Nothing is sent if nothing changed. Large files that the Hub already has from an interrupted call are not sent
        again. The commit is rejected if someone else has committed since the comparison.
        """
        api, repo_id, kind, tag = self.api, staged.repo_id, staged.kind, self.tag
        with hub_errors(api):
            remote = _read(api, repo_id, kind, tag)
        files = tuple(_changes(staged, remote, tag, self.private))
        outcome = Outcome(kind, repo_id, "unchanged", tag, files=files, missing=staged.missing)
        if outcome.changes:
            _check_card(api, staged)
        elif remote and remote.tagged is not None:
            return outcome
        if self.dry_run:
            return replace(outcome, state="to publish" if outcome.changes else "to tag")
        with hub_errors(api):
            if remote is None:
                sdk = "gradio" if kind == "space" else None
                api.create_repo(repo_id, repo_type=kind, private=self.private, space_sdk=sdk, exist_ok=True)
                remote = _read(api, repo_id, kind, tag) or _Remote(None, self.private)
            if not outcome.changes:
                _set_tag(api, repo_id, kind, tag, remote.head)
                return replace(outcome, state="tagged")
            commit = _commit(api, staged, outcome, remote.head)
            _set_tag(api, repo_id, kind, tag, commit)
            return replace(outcome, state="published", commit=commit)

    def collect(self, org: str) -> tuple[Collected | None, str | None]:
        """Update the collection of the repositories on the Hub; return it, or the reason why there is none."""
        if self.stopped:
            return None, None if self.dry_run else NOT_TRIED
        order: list[Item] = [("dataset", f"{org}/{name}") for name in benchmark_names()]
        order += [("space", f"{org}/{name}") for name in metric_names()]
        published = {(item.kind, item.repo_id) for item in self.outcomes if item.state not in ("failed", "skipped")}
        try:
            with hub_errors(self.api):
                return _collect(self.api, org, order, published, self.private, self.dry_run), None
        except HubError as error:
            return None, None if self.dry_run else str(error)


@dataclass(frozen=True, slots=True)
class _Remote:
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


def _read(api: HfApi, repo_id: str, kind: Kind, tag: str) -> _Remote | None:
    """Return the repository on the Hub; None if it does not exist or the token has no access."""
    from huggingface_hub.errors import RepositoryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    def files_at(revision: str) -> dict[str, RepoFile]:
        tree = api.list_repo_tree(repo_id, repo_type=kind, revision=revision, recursive=True)
        return {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}

    try:
        info = api.repo_info(repo_id, repo_type=kind)
    except RepositoryNotFoundError:
        return None
    if (head := getattr(info, "sha", None)) is None:
        return _Remote(None, bool(info.private))
    files = files_at(head)
    manifest = _remote_manifest(api, repo_id, kind, head) if MANIFEST in files else None
    commit = _tagged_commit(api, repo_id, kind, tag)
    tagged = files if commit == head else files_at(commit) if commit else None
    return _Remote(head, bool(info.private), files, manifest, tagged)


def _remote_manifest(api: HfApi, repo_id: str, kind: Kind, revision: str) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory(prefix="qabench-manifest-") as folder:  # not into the user's cache
        path = api.hf_hub_download(
            repo_id, MANIFEST, repo_type=kind, revision=revision, cache_dir=folder, force_download=True
        )
        try:
            manifest = json_of(Path(path).read_bytes())
        except ValueError:
            return None
    ours = isinstance(manifest, dict) and str(manifest.get("format")).startswith("qabench ")
    return manifest if ours and isinstance(manifest.get("files"), dict) else None


def _changes(staged: Staged, remote: _Remote | None, tag: str, private: bool) -> list[FileChange]:
    """Return the change that publishing makes to each file.

    A version is published once. If its tag exists, the folder must equal the tagged content, and nothing changes; other
    content needs another version. Files that others added to a repository of qabench are kept.

    Raises:
        QabenchError: the repository on the Hub was not published by qabench, or is public despite ``private``; the tag
            has other content; or configs would be lost.
    """
    if remote is None:
        return _plan(staged.folder, {}, {})
    if remote.manifest is None and remote.files.keys() - INITIAL[staged.kind]:
        raise QabenchError(
            f"the existing repository was not published by qabench (it contains {_few(sorted(remote.files))}); it was "
            "not changed. Use another --org, or rename that repository on the Hub"
        )
    if private and not remote.private:
        raise QabenchError("it is public, but --private was given; first make it private in its settings on the Hub")
    manifest = remote.manifest or {}
    if remote.tagged is not None:
        changes = _plan(staged.folder, remote.tagged, manifest)
        if differing := [file.path for file in changes if file.change != "unchanged"]:
            raise QabenchError(
                f"{tag} is published with other content: {_few(differing)}. A published version never changes: "
                "increase the version of the package, unless the files differ only because of other versions of the "
                f"libraries listed in {MANIFEST}"
            )
        return changes
    local_manifest = json.loads((staged.folder / MANIFEST).read_text(encoding="utf-8"))
    if lost := sorted(set(manifest.get("configs", ())) - set(local_manifest.get("configs", ()))):
        raise QabenchError(
            f"the Hub has configs whose data is missing here: {_few(lost)}; run `qabench fetch`, or set QABENCH_MIRROR"
        )
    return _plan(staged.folder, remote.files, manifest)


def _plan(folder: Path, remote_files: Mapping[str, RepoFile], manifest: Mapping[str, Any]) -> list[FileChange]:
    """Compare a folder with files on the Hub; of those that the folder lacks, only the manifest's are deleted."""
    changes = []
    local = digests(folder, manifest=True)
    for path, digest in local.items():
        if path not in remote_files:
            changes.append(FileChange(path, "added", **digest))
        elif _same_content(folder / path, remote_files[path]):
            changes.append(FileChange(path, "unchanged", **digest))
        else:
            changes.append(FileChange(path, "changed", **digest))
    gone = [path for path in manifest.get("files", {}) if path in remote_files and path not in local]
    changes += [FileChange(path, "deleted") for path in gone]
    return sorted(changes, key=lambda file: file.path)


def _same_content(path: Path, file: RepoFile) -> bool:
    """Return whether a local file equals the Hub's, by the digest on the Hub: SHA-256 for LFS, else git's."""
    data = path.read_bytes()
    if file.lfs:
        return hashlib.sha256(data).hexdigest() == file.lfs.sha256
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == file.blob_id


def _commit(api: HfApi, staged: Staged, outcome: Outcome, parent: str | None) -> str:
    """Make one commit with all changes and return its id."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[CommitOperationAdd | CommitOperationDelete] = []
    for file in outcome.files:
        if file.change == "deleted":
            operations.append(CommitOperationDelete(file.path, is_folder=False))
        elif file.change != "unchanged":
            operations.append(CommitOperationAdd(file.path, staged.folder / file.path))
    # Not upload_folder, which may make several commits for one folder.
    commit = api.create_commit(
        staged.repo_id,
        operations,
        repo_type=staged.kind,
        parent_commit=parent,
        commit_message=f"qabench {outcome.tag.removeprefix('v')}",
    )
    return str(commit.oid)


def _set_tag(api: HfApi, repo_id: str, kind: Kind, tag: str, commit: str | None) -> None:
    """Tag a commit, and read the tag back: a proxy may answer 200 for a Hub that has not set it."""
    api.create_tag(repo_id, tag=tag, repo_type=kind, revision=commit)
    if (tagged := _tagged_commit(api, repo_id, kind, tag)) != commit:
        raise HubError(
            f"{api.endpoint} confirmed the tag {tag} of {repo_id}, but the tag names "
            f"{'no commit' if tagged is None else f'the commit {tagged}'} instead of {commit}: check HF_ENDPOINT and "
            "run the command again"
        )


def _tagged_commit(api: HfApi, repo_id: str, kind: Kind, tag: str) -> str | None:
    refs = api.list_repo_refs(repo_id, repo_type=kind)
    return next((ref.target_commit for ref in refs.tags if ref.name == tag), None)


def _check_card(api: HfApi, staged: Staged) -> None:
    from huggingface_hub import DatasetCard, SpaceCard

    card_class = DatasetCard if staged.kind == "dataset" else SpaceCard
    card = card_class((staged.folder / "README.md").read_text(encoding="utf-8"))
    with hub_errors(api):
        try:
            card.validate()
        except json.JSONDecodeError:
            raise
        except ValueError as error:
            raise QabenchError(f"the Hub rejects the card: {error}") from None


def _collect(
    api: HfApi, org: str, order: Sequence[Item], published: Container[Item], private: bool, dry_run: bool
) -> Collected | None:
    """Add repositories to the organization's collection, which is created if it does not exist.

    This project's items come first, in the given order; other items follow, with their notes. Nothing is removed.

    Args:
        api: huggingface_hub's client.
        org: the organization.
        order: everything that this project publishes, in the order of the collection.
        published: the items to add if they are missing.
        private: whether a new collection is private.
        dry_run: change nothing, and return what would be done.

    Returns:
        The result; None if there is nothing to add.
    """
    slug = next((listed.slug for listed in api.list_collections(owner=org) if listed.title == COLLECTION), None)
    collection = api.get_collection(slug) if slug else None  # the list contains only some of its items
    present = [item for item, _ in _items(collection)] if collection else []
    items = [item for item in order if item in published or item in present]
    if not items:
        return None
    if present[: len(items)] == items:
        return Collected(slug, "unchanged", items)
    if dry_run:
        return Collected(slug, "to change" if slug else "to create", items)
    if collection is None:
        titles = [dataset_table(name).title for name in benchmark_names()]
        about = f"{', '.join(titles[:-1])} and {titles[-1]}: data and official scores, by the qabench project."
        collection = api.create_collection(
            COLLECTION, namespace=org, description=about, private=private, exists_ok=True
        )
    for kind, repo_id in items:
        if (kind, repo_id) not in present:
            collection = api.add_collection_item(collection.slug, repo_id, kind, exists_ok=True)  # type: ignore[arg-type]
    _reorder(api, collection, items)
    return Collected(collection.slug, "changed" if slug else "created", items)


def _items(collection: Collection) -> list[tuple[Item, str]]:
    """Return the items and their ids in the collection, in order."""
    return [((item.item_type, item.item_id), item.item_object_id) for item in collection.items]


def _reorder(api: HfApi, collection: Collection, items: Sequence[Item]) -> None:
    present = _items(collection)
    for position, item in enumerate(items):
        if present[position][0] != item:
            moved = next(entry for entry in present if entry[0] == item)
            api.update_collection_item(collection.slug, moved[1], position=position)
            present.remove(moved)
            present.insert(position, moved)


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
