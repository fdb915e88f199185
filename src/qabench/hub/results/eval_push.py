"""Results proposed to the owner of a model: one pull request that adds files of ``.eval_results``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qabench.errors import InputError, QabenchError
from qabench.hub.publish.refusals import explained, no_token
from qabench.hub.results.eval_results import to_yaml

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry, HfApi

DESCRIPTION = """\
Scores of this model, computed by [qabench](https://github.com/qabench/qabench). Each entry's notes hold the number of
questions, the 95 % interval and the signature: everything that the score depends on.
"""


def push(model: str, files: Mapping[str, Sequence[EvalResultEntry]]) -> str | None:
    """Opens a pull request on a model's repository.

    Entries of other tasks in the same files stay as they are.

    Args:
        model: its name on the Hub.
        files: entries by path in the repository.

    Returns:
        The pull request's address; None where the repository has all of it already, and none was opened.

    Raises:
        InputError: the model's name is none, or a file that is there holds no entries.
        HubError: there is no token, or the Hub refuses.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, get_token

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        raise InputError(f"{model!r} is no name of a model on the Hub; allowed: names such as ORG/NAME")
    api = HfApi()
    if not get_token():
        raise QabenchError(no_token(api.endpoint))
    try:
        head = api.model_info(model).sha
        old = {path: _text(api, model, path, head) for path in files}
        new = {path: to_yaml(entries, old[path] or "") for path, entries in files.items()}
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
    except Exception as error:  # of huggingface_hub or its HTTP client: all are told apart there
        raise explained(error, api.endpoint) from error
    return str(commit.pr_url)


def _text(api: HfApi, model: str, path: str, revision: str | None) -> str | None:
    """A file of the repository as it is; None where there is none."""
    from huggingface_hub.errors import EntryNotFoundError

    if revision is None:
        return None
    try:
        return Path(api.hf_hub_download(model, path, revision=revision)).read_text(encoding="utf-8")
    except EntryNotFoundError:
        return None
