"""Publishing to the Hub: datasets as ``qabench build`` writes them, metrics as Spaces, a collection of both.

Only repositories that pass the checks of ``qabench.hub.publish.gate`` are sent. Each repository gets one commit
with all changes, and the tag of the package's version; if nothing changed, nothing is sent. After an error, a second
call continues the first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qabench.errors import InputError, QabenchError
from qabench.hub.build.licenses import check_accepted
from qabench.hub.build.repository import digests
from qabench.hub.errors import HubError, no_token
from qabench.hub.publish.collection import Collected, Item, collect
from qabench.hub.publish.plan import FileChange
from qabench.hub.publish.sending import Outcome, compare, send, speaking_to
from qabench.hub.publish.staging import Staged, stage_dataset, stage_space
from qabench.loading_scripts import benchmark_names, dataset_table
from qabench.metrics import metric_names
from qabench.signature import version

if TYPE_CHECKING:
    from huggingface_hub import HfApi

What = Literal["datasets", "metrics", "all"]


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
        """Whether nothing failed; a skipped repository has not failed."""
        return self.collection_error is None and all(one.state != "failed" for one in self.repositories)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {**asdict(self), "ok": self.ok}


def publish(
    what: What,
    org: str,
    *,
    private: bool = False,
    dry_run: bool = False,
    accept_licenses: bool = False,
    skip_missing: bool = False,
    out: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Published:
    """Publishes datasets, metrics or both under an organization, on the Hub of HF_ENDPOINT with the token of HF_TOKEN.

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
    datasets, metrics = _wanted(what, org)
    api = _client()
    if not dry_run:
        check_accepted([name for name in datasets if not dataset_table(name).restriction], accept_licenses)
        _check_token(api)
    publisher = _Publisher(api, f"v{version()}", private, dry_run)
    with _folder(out) as root, _staged(datasets, metrics, org, root, skip_missing) as staged:
        for done, one in enumerate(staged, 1):
            publisher.take(one)
            if progress:
                progress(done, len(datasets) + len(metrics))
    collection, problem = publisher.collect(org)
    return Published(org, api.endpoint, dry_run, tuple(publisher.outcomes), collection, problem)


class _Publisher:
    """Publishes one repository after the other, and stores their results and whether the Hub can be used."""

    def __init__(self, api: HfApi, tag: str, private: bool, dry_run: bool) -> None:
        self.api, self.tag, self.private, self.dry_run = api, tag, private, dry_run
        self.outcomes: list[Outcome] = []
        self.stopped: HubError | None = None

    def take(self, staged: Staged) -> None:
        outcome = Outcome(staged.kind, staged.repo_id, "failed", self.tag, missing=staged.missing)
        if staged.skipped:
            outcome = replace(outcome, state="skipped", reason=staged.skipped)
        elif staged.problems:
            outcome = replace(outcome, reason="; ".join(staged.problems))
        elif self.stopped is None or self.dry_run:
            outcome = self._try(staged, outcome)
        else:
            outcome = replace(outcome, reason="not tried, because of the previous error")
        self.outcomes.append(outcome)

    def _try(self, staged: Staged, failed: Outcome) -> Outcome:
        try:
            if self.stopped:
                raise self.stopped
            return (compare if self.dry_run else send)(self.api, staged, self.tag, self.private)
        except HubError as error:
            self.stopped = error if error.stops else None
            if self.dry_run:  # the local files can be listed without the Hub
                files = (FileChange(path, "added", **of) for path, of in digests(staged.folder, manifest=True).items())
                return replace(
                    failed, state="to publish", files=tuple(files), reason=f"not compared with the Hub: {error}"
                )
            return replace(failed, reason=str(error))
        except QabenchError as error:
            return replace(failed, reason=str(error))

    def collect(self, org: str) -> tuple[Collected | None, str | None]:
        """The collection of the repositories on the Hub, or the reason why there is none."""
        if self.stopped:
            return None, None if self.dry_run else "not tried, because of the previous error"
        order: list[Item] = [("dataset", f"{org}/{name}") for name in benchmark_names()]
        order += [("space", f"{org}/{name}") for name in metric_names()]
        there = {(one.kind, one.repo_id) for one in self.outcomes if one.state not in ("failed", "skipped")}
        try:
            with speaking_to(self.api):
                return collect(self.api, org, order, there, private=self.private, dry_run=self.dry_run), None
        except HubError as error:
            return None, None if self.dry_run else str(error)


def _wanted(what: str, org: str) -> tuple[list[str], list[str]]:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    if what not in ("datasets", "metrics", "all"):
        raise InputError(f"{what!r} cannot be published; allowed: datasets, metrics, all")
    datasets = benchmark_names() if what != "metrics" else []
    metrics = metric_names() if what != "datasets" else []
    try:
        if "/" in org or not org:
            raise HFValidationError("it must be an organization, without a repository")
        validate_repo_id(f"{org}/{max([*datasets, *metrics], key=len)}")
    except HFValidationError as error:
        raise InputError(f"--org is {org!r}, which is not a valid name on the Hub: {error}") from None
    return datasets, metrics


def _client() -> HfApi:
    from huggingface_hub import HfApi

    return HfApi(library_name="qabench", library_version=version())


def _check_token(api: HfApi) -> None:
    from huggingface_hub import get_token

    if get_token() is None:
        raise QabenchError(f"{no_token(api.endpoint)}. Nothing was published")
    with speaking_to(api):
        api.whoami()


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is None:
        with tempfile.TemporaryDirectory(prefix="qabench-publish-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an empty folder; it was not changed")
    yield out.absolute()


@contextmanager
def _staged(
    datasets: list[str], metrics: list[str], org: str, root: Path, skip_missing: bool
) -> Iterator[Iterator[Staged]]:
    """The repositories one by one; metrics are checked in other processes while datasets are built and sent."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        spaces = [pool.submit(stage_space, name, org, root) for name in metrics]
        try:
            yield chain(
                (stage_dataset(name, org, root, skip_missing=skip_missing) for name in datasets),
                (space.result() for space in spaces),
            )
        finally:
            for space in spaces:
                space.cancel()
