"""Publishing to the Hub: datasets as ``qabench build`` writes them, metrics as Spaces.

Only repositories that pass the checks of ``qabench.hub.staging`` are sent. Each repository gets one
commit with all changes, and the tag of the package's version. If nothing changed, nothing is sent.
After an error, a second call continues the first.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoCard
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.sha import git_hash

from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError, some
from qabench.evaluation.scoring import Progress
from qabench.evaluation.signature import version
from qabench.hub.build import MANIFEST
from qabench.hub.cards import check_accepted
from qabench.hub.client import HubError, bounded_answers, check_name, hub_errors, require_token
from qabench.hub.leaderboards import INSPECT_AI, check_framework
from qabench.hub.staging import Repository, stage_dataset, stage_space
from qabench.hub.wheel import is_released, own_wheel
from qabench.io.limits import json_of
from qabench.loading_scripts import dataset_table, usable_names
from qabench.metrics import metric_class, metric_names

# Files that the Hub adds to a new repository.
INITIAL = {"dataset": {".gitattributes"}, "space": {".gitattributes", "README.md"}}


@dataclass(frozen=True, slots=True)
class Published:
    """The result of ``publish``.

    Attributes:
        org: the organization or the user.
        endpoint: the address of the Hub.
        dry_run: whether nothing was sent.
        repositories: the result for each repository.
        output: the folder that keeps the repositories, or None.
    """

    org: str
    endpoint: str
    dry_run: bool
    repositories: tuple[Repository, ...]
    output: Path | None = None

    @property
    def ok(self) -> bool:
        """Return whether nothing failed. A skipped repository has not failed."""
        return all(repository.state != "failed" for repository in self.repositories)

    def as_dict(self) -> Json:
        """Return the result as JSON data."""
        document = asdict(self)
        for repository in document["repositories"]:
            folder = repository.pop("folder")
            if document["output"]:
                # Without an output folder, the files were temporary.
                repository["folder"] = str(folder)
        del document["output"]
        return {**document, "ok": self.ok}


def publish(
    what: Literal["datasets", "metrics", "all"],
    org: str,
    *,
    names: Sequence[str] = (),
    private: bool = False,
    dry_run: bool = False,
    accept_licenses: bool = False,
    skip_missing: bool = False,
    unreleased: bool = False,
    framework: str = INSPECT_AI,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Published:
    """Publish datasets, metrics or both under an organization.

    They are sent to the Hub at HF_ENDPOINT, with the token of HF_TOKEN or ``hf auth login``. The
    tag is vVERSION, which ``evaluate.load(..., revision="VERSION")`` looks for. A version is
    published once: if the tag has other content, the repository is rejected until the package has
    another version. A repository that qabench did not write is rejected, too. The visibility is set
    when a repository is created, and not changed later.

    Args:
        what: the kinds of repositories.
        org: an organization or a user.
        names: only these benchmarks and their metrics, or () for all.
        private: make new repositories private. An existing public repository is
            rejected.
        dry_run: build, check and compare with the Hub if it can be reached. Send nothing.
        accept_licenses: the user has read the licenses of the data and will comply with them.
        skip_missing: publish datasets without the configs whose data is not available here. A
            dataset is rejected if the Hub has such a config.
        unreleased: publish a version that is not on PyPI. Spaces then install the wheel that they
            contain.
        framework: the framework of the tasks in ``eval.yaml``, as in ``qabench.hub.build``.
        output: a new or empty folder to keep the repositories in, as ``datasets/ORG/NAME`` and
            ``spaces/ORG/NAME``, with all files as they are sent.
        progress: called with the number of repositories processed, and of all repositories.
    """
    # Find what is wrong before a repository is built, which takes minutes.
    check_framework(framework)
    chosen = [dataset_table(name).name for name in names] or usable_names()
    datasets = chosen if what != "metrics" else []
    spaces = []
    if what != "datasets":
        spaces = [name for name in metric_names() if metric_class(name).BENCHMARK in chosen]
    # The Hub limits the length of ORG/NAME, so the longest name is checked for all.
    check_name("--org with a repository", f"{org}/{max([*datasets, *spaces], key=len)}", "ORG/NAME")
    if output:
        _check_output(output)
    if not dry_run:
        _check_release(unreleased, private_spaces=private and bool(spaces))
    api = HfApi(library_name="qabench", library_version=version())
    with bounded_answers():
        if not dry_run:
            to_publish = [name for name in datasets if not dataset_table(name).restriction]
            check_accepted(to_publish, accept_licenses)
            require_token(api)
            with hub_errors(api):
                # Ask the Hub whether the token is valid before anything is built.
                api.whoami()

        # Build, check and send one repository after the other.
        outcomes: list[Repository] = []
        with tempfile.TemporaryDirectory(
            prefix="qabench-publish-", ignore_cleanup_errors=True
        ) as folder:
            root = output.absolute() if output else Path(folder)
            wheel = own_wheel(Path(folder)) if spaces else None

            def staged() -> Iterator[Repository]:
                # A generator, so that each repository is sent before the next one is built.
                for name in datasets:
                    yield stage_dataset(
                        name, org, root, skip_missing=skip_missing, framework=framework
                    )
                for name in spaces:
                    yield stage_space(name, org, root, wheel)

            for repository in staged():
                outcomes.append(_outcome(api, repository, private, dry_run))
                if progress:
                    progress(len(outcomes), len(datasets) + len(spaces))
    return Published(org, api.endpoint, dry_run, tuple(outcomes), output)


def _check_output(folder: Path) -> None:
    """Raise InputError unless a folder is new or empty: its content would be published, too."""
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"--output {folder} is not empty; name a new folder")


def _check_release(unreleased: bool, private_spaces: bool) -> None:
    """Raise QabenchError for an unreleased version, unless it is allowed and Spaces can install it."""
    if is_released():
        return
    if not unreleased:
        raise QabenchError(
            f"qabench {version()} was not installed from an index: cards and Spaces would tell visitors to install a "
            "name that anybody could register on PyPI. Release it first and install the release, or pass --unreleased, "
            "so that Spaces install the wheel that they contain. Nothing was published"
        )
    if private_spaces:
        raise QabenchError(
            "an unreleased version cannot be published in private Spaces: a Space installs its packages without a "
            "token, so it cannot download the wheel from its own private repository. Publish public Spaces, only the "
            "datasets, or a release. Nothing was published"
        )


def _outcome(api: HfApi, staged: Repository, private: bool, dry_run: bool) -> Repository:
    """Publish a staged repository, or in a dry run only compare it with the Hub."""
    if staged.state != "staged":
        return staged
    try:
        if commit := _tagged_version(api, staged, private):
            return replace(staged, state="unchanged", commit=commit)
        _check_card(api, staged)
        if dry_run:
            return replace(staged, state="to publish")
        return replace(staged, state="published", commit=_upload(api, staged, private))
    except QabenchError as error:
        if dry_run and isinstance(error, HubError):
            return replace(staged, state="to publish", reason=f"not compared with the Hub: {error}")
        return replace(staged, state="failed", reason=str(error))


def _tagged_version(api: HfApi, staged: Repository, private: bool) -> str | None:
    """Return the commit of the version's tag, or None if the repository or the tag does not exist.

    Raises:
        QabenchError: the repository is not qabench's, is public despite ``private``, or would lose
            configs, or the tag has other content.
    """
    # Ask the Hub what it has.
    repo: Json = {"repo_id": staged.repo_id, "repo_type": staged.kind}
    with hub_errors(api):
        try:
            info = api.repo_info(**repo)
        except RepositoryNotFoundError:
            return None
        files = api.list_repo_files(**repo)
        manifest = _remote_manifest(api, staged) if MANIFEST in files else None
        commit = _tagged_commit(api, staged)
        tagged: dict[str, RepoFile] = {}
        if commit:
            for entry in api.list_repo_tree(**repo, revision=commit, recursive=True):
                # The tree of a repository also lists folders.
                if isinstance(entry, RepoFile):
                    tagged[entry.path] = entry

    # Compare it with what is staged.
    if manifest is None and set(files) - INITIAL[staged.kind]:
        raise QabenchError(
            f"the existing repository was not published by qabench (it contains {some(sorted(files))}); it was "
            "not changed. Use another --org, or rename that repository on the Hub"
        )
    if private and not info.private:
        raise QabenchError(
            "it is public, but --private was given; first make it private in its settings on the Hub"
        )
    if commit:
        differing = []
        for path in staged.files:
            if not _same_content(staged.folder / path, tagged.get(path)):
                differing.append(path)
        if differing:
            raise QabenchError(
                f"{staged.tag} is published with other content: {some(differing)}. A published version never "
                "changes: increase the version of the package, unless the files differ only because of other versions "
                f"of the libraries listed in {MANIFEST}"
            )
        return commit
    local_manifest = json.loads((staged.folder / MANIFEST).read_text(encoding="utf-8"))
    published_configs = set((manifest or {}).get("configs", ()))
    lost = sorted(published_configs.difference(local_manifest.get("configs", ())))
    if lost:
        raise QabenchError(
            f"the Hub has configs whose data is missing here: {some(lost)}; run `qabench fetch`, or set QABENCH_MIRROR"
        )
    return None


def _upload(api: HfApi, staged: Repository, private: bool) -> str:
    """Commit the files, set the version's tag, and return the commit.

    Files that qabench published earlier and that are no longer staged are deleted. The client sends
    no file that the Hub already has, and makes no commit without changes. Files that qabench did
    not publish are kept. The commit is rejected if someone else commits at the same time.
    """
    repo: Json = {"repo_id": staged.repo_id, "repo_type": staged.kind}
    with hub_errors(api):
        # A Space must name what it runs on when it is created.
        sdk = "gradio" if staged.kind == "space" else None
        api.create_repo(**repo, private=private, space_sdk=sdk, exist_ok=True)
        head = api.repo_info(**repo).sha
        files = set(api.list_repo_files(**repo, revision=head))
        manifest = _remote_manifest(api, staged) if MANIFEST in files else None
        published_files = set((manifest or {}).get("files", ()))
        to_delete = files & published_files - set(staged.files)
        operations: list[CommitOperationAdd | CommitOperationDelete] = []
        for path in staged.files:
            operations.append(CommitOperationAdd(path, staged.folder / path))
        for path in sorted(to_delete):
            operations.append(CommitOperationDelete(path, is_folder=False))
        # ``upload_folder`` is not used, because it can make several commits for one folder.
        commit = api.create_commit(
            **repo,
            operations=operations,
            parent_commit=head,
            commit_message=f"qabench {version()}",
        ).oid
        api.create_tag(**repo, tag=staged.tag, revision=commit)
    return str(commit)


def _remote_manifest(api: HfApi, staged: Repository) -> Json | None:
    """Return the manifest that qabench published last, or None if the file is not qabench's."""
    # The file would stay in the user's cache, so it is downloaded to a temporary folder.
    with tempfile.TemporaryDirectory(prefix="qabench-manifest-") as folder:
        path = api.hf_hub_download(
            staged.repo_id, MANIFEST, repo_type=staged.kind, local_dir=folder
        )
        try:
            manifest = json_of(Path(path).read_bytes())
        except ValueError:
            return None
    if not isinstance(manifest, dict) or not str(manifest.get("format")).startswith("qabench "):
        return None
    return manifest


def _same_content(path: Path, file: RepoFile | None) -> bool:
    """Return whether a local file has the digest that the Hub reports for its file."""
    if file is None:
        return False
    data = path.read_bytes()
    if file.lfs:
        return hashlib.sha256(data).hexdigest() == file.lfs.sha256
    return git_hash(data) == file.blob_id


def _tagged_commit(api: HfApi, staged: Repository) -> str | None:
    """Return the commit with the tag of the package's version, or None without the tag."""
    for tag in api.list_repo_refs(staged.repo_id, repo_type=staged.kind).tags:
        if tag.name == staged.tag:
            return tag.target_commit
    return None


def _check_card(api: HfApi, staged: Repository) -> None:
    with hub_errors(api):
        try:
            RepoCard.load(staged.folder / "README.md").validate(repo_type=staged.kind)
        except ValueError as error:
            raise QabenchError(f"the Hub rejects the card: {error}") from None
