"""Scores that a neural network computes on this machine, and what they share: revisions, devices, batches."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from qabench.errors import InputError, QabenchError

WEIGHTS = ("*.safetensors", "*.bin")


def buckets(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Positions of the inputs in batches of like length, so that little is padded; the longest first.

    Longest first, because a batch that does not fit into memory then fails at once. Ties stay in order.

    Raises:
        InputError: the batch size is not positive.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; allowed: 1 or more")
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def default_device() -> str:
    """ "cuda" where there is a GPU, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def pinned(model: str, revision: str | None) -> tuple[str | None, str]:
    """The commit to load a model's weights at, and a short form of it for signatures.

    Args:
        model: a name on the Hub, or a folder, whose weights are digested instead (the commit is None then).
        revision: a branch, tag or commit on the Hub.

    Raises:
        QabenchError: the model cannot be reached, or the folder holds no weights.
    """
    if (folder := Path(model)).is_dir():
        files = sorted(path for pattern in WEIGHTS for path in folder.glob(pattern))
        if not files:
            raise QabenchError(f"the folder {model} has no weights: no file {' or '.join(WEIGHTS)} is in it")
        total = hashlib.sha256()
        for path in files:
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        return None, total.hexdigest()[:12]
    commit = commit_of(file_of(model, "config.json", revision))
    return commit, commit[:12]


def commit_of(path: Path) -> str:
    """The commit that a file in the Hub's cache belongs to."""
    from transformers.utils.hub import extract_commit_hash

    return extract_commit_hash(str(path), None) or "unknown"


def file_of(model: str, name: str, revision: str | None) -> Path:
    """A file of a model: of the folder, of the Hub's cache, or downloaded.

    Raises:
        QabenchError: it is not there.
    """
    from transformers.utils import cached_file

    try:
        return Path(cached_file(model, name, revision=revision))
    except (OSError, ValueError) as error:
        raise cannot_load(model, error) from error


def cannot_load(model: str, error: Exception) -> QabenchError:
    """The error for a model that is not there or not what is wanted."""
    return QabenchError(
        f"the model {model} cannot be loaded ({error}); give a name on the Hub that can be reached, or a folder"
    )
