"""Sends one checked folder to a repository on the Hub: one commit and a tag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from qabench.errors import QabenchError
from qabench.hub.errors import explained
from qabench.hub.publish.plan import FileChange, plan
from qabench.hub.publish.remote import Kind, Remote, read
from qabench.hub.publish.staging import Staged

if TYPE_CHECKING:
    from huggingface_hub import HfApi

State = Literal["published", "tagged", "unchanged", "to publish", "to tag", "skipped", "failed"]


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
    state: State
    tag: str
    commit: str | None = None
    files: tuple[FileChange, ...] = ()
    reason: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def changes(self) -> int:
        """The number of files that differ from the Hub's."""
        return sum(file.change != "unchanged" for file in self.files)


def compare(api: HfApi, staged: Staged, tag: str, private: bool) -> Outcome:
    """What publishing would do, without changing anything; the Hub also validates the card.

    Raises:
        HubError: the Hub cannot be reached, or rejects the request.
        QabenchError: the repository must not be published, see ``qabench.hub.publish.plan``; or the Hub rejects the
            card.
    """
    with speaking_to(api):
        remote = read(api, staged.repo_id, staged.kind, tag)
    files = tuple(plan(staged.folder, staged.kind, remote, tag, private=private))
    outcome = Outcome(staged.kind, staged.repo_id, "to publish", tag, files=files, missing=staged.missing)
    if outcome.changes:
        _check_card(api, staged)
        return outcome
    return replace(outcome, state="unchanged" if remote is not None and remote.tagged is not None else "to tag")


def send(api: HfApi, staged: Staged, tag: str, private: bool) -> Outcome:
    """Publishes a repository: creates it if needed, makes one commit with all changes, and sets the tag.

    Nothing is sent if nothing changed. Large files that the Hub already has from an interrupted call are not sent
    again. The commit is rejected if someone else has committed since the comparison.

    Raises:
        HubError: the Hub cannot be reached, or rejects the request.
        QabenchError: as ``compare``.
    """
    outcome = compare(api, staged, tag, private)
    if outcome.state == "unchanged":
        return outcome
    with speaking_to(api):
        remote = read(api, staged.repo_id, staged.kind, tag) or _created(api, staged, tag, private)
        if not outcome.changes:
            api.create_tag(staged.repo_id, tag=tag, repo_type=staged.kind, revision=remote.head)
            return replace(outcome, state="tagged")
        commit = _commit(api, staged, outcome, tag, remote.head)
        api.create_tag(staged.repo_id, tag=tag, repo_type=staged.kind, revision=commit)
        return replace(outcome, state="published", commit=commit)


@contextmanager
def speaking_to(api: HfApi) -> Iterator[None]:
    """Raises HubError, with advice, for any error of the Hub or of the connection to it."""
    try:
        yield
    except QabenchError:
        raise
    except Exception as error:  # from huggingface_hub, httpx2 or hf_xet, which have no common base class
        raise explained(error, api.endpoint) from error


def _created(api: HfApi, staged: Staged, tag: str, private: bool) -> Remote:
    sdk = "gradio" if staged.kind == "space" else None
    api.create_repo(staged.repo_id, repo_type=staged.kind, private=private, space_sdk=sdk, exist_ok=True)
    return read(api, staged.repo_id, staged.kind, tag) or Remote(None, private)


def _commit(api: HfApi, staged: Staged, outcome: Outcome, tag: str, parent: str | None) -> str:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[CommitOperationAdd | CommitOperationDelete] = []
    for file in outcome.files:
        if file.change == "deleted":
            operations.append(CommitOperationDelete(file.path, is_folder=False))
        elif file.change != "unchanged":
            operations.append(CommitOperationAdd(file.path, staged.folder / file.path))
    # Not upload_folder, which may make several commits for one folder.
    made = api.create_commit(
        staged.repo_id,
        operations,
        repo_type=staged.kind,
        parent_commit=parent,
        commit_message=f"qabench {tag.removeprefix('v')}",
    )
    return str(made.oid)


def _check_card(api: HfApi, staged: Staged) -> None:
    from huggingface_hub import DatasetCard, SpaceCard

    kind = DatasetCard if staged.kind == "dataset" else SpaceCard
    card = kind((staged.folder / "README.md").read_text(encoding="utf-8"))
    with speaking_to(api):
        try:
            card.validate()
        except ValueError as error:
            raise QabenchError(f"the Hub rejects the card: {error}") from None
