"""A pull request that adds files of ``.eval_results`` to a model's repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qabench.errors import InputError, QabenchError
from qabench.hub.errors import explained, no_token
from qabench.hub.results.entries import REPO_ID, to_yaml

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry, HfApi

DESCRIPTION = """\
Scores of this model, computed by [qabench](https://github.com/qabench/qabench). The notes of each entry contain n, the
95% interval, the deviations from the official score (if any) and the signature: everything that the score depends on.
"""


def push(model: str, files: Mapping[str, Sequence[EvalResultEntry]]) -> str | None:
    """Opens a pull request on a model's repository.

    Entries of other tasks in the same files are not changed.

    Args:
        model: its name on the Hub.
        files: entries by path in the repository.

    Returns:
        The URL of the pull request; None if the repository already has these results.

    Raises:
        InputError: the name is not that of a model, or an existing file does not contain entries.
        QabenchError: the token is missing, or the Hub rejects the request.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, get_token

    if not REPO_ID.fullmatch(model):
        raise InputError(f"{model!r} is not the name of a model on the Hub; allowed: names such as ORG/NAME")
    api = HfApi()
    if not get_token():
        raise QabenchError(no_token(api.endpoint))
    try:
        head = api.model_info(model).sha
        old = {path: _text(api, model, path, head) for path in files}
        new = {path: to_yaml(entries, old[path] or "", path) for path, entries in files.items()}
        changed = [CommitOperationAdd(path, new[path].encode()) for path in files if new[path] != old[path]]
        if not changed:
            return None
        commit = api.create_commit(
            model,
            changed,
            commit_message=f"Add evaluation results: {', '.join(Path(path).stem for path in files)}",
            commit_description=DESCRIPTION,
            create_pr=True,
        )
    except QabenchError:
        raise
    except Exception as error:  # from huggingface_hub or its HTTP client; see `explained`
        raise explained(error, api.endpoint) from error
    return str(commit.pr_url)


def _text(api: HfApi, model: str, path: str, revision: str | None) -> str | None:
    """The content of a file of the repository; None if it does not exist."""
    from huggingface_hub.errors import EntryNotFoundError

    if revision is None:
        return None
    try:
        return Path(api.hf_hub_download(model, path, revision=revision)).read_text(encoding="utf-8")
    except EntryNotFoundError:
        return None
