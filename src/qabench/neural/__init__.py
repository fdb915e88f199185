"""Scores computed by neural networks on this machine, and their shared code: revisions, devices, batches."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from qabench.errors import InputError, QabenchError

WEIGHTS = ("*.safetensors", "*.bin")


def buckets(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Positions of the inputs in batches of similar length, to reduce padding; the longest first.

    With the longest first, a batch that does not fit into memory fails at once. Ties keep their order.

    Raises:
        InputError: the batch size is not positive.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; allowed: 1 or more")
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def default_device() -> str:
    """ "cuda" if there is a GPU, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def pinned(model: str, revision: str | None) -> tuple[str | None, str]:
    """The commit at which to load a model's weights, and its short form for signatures.

    Args:
        model: a name on the Hub, or a folder. A folder has no commit (None); a digest of its weights replaces it.
        revision: a branch, tag or commit on the Hub.

    Raises:
        QabenchError: the model is not available, or the folder contains no weights.
    """
    if (folder := Path(model)).is_dir():
        files = sorted(path for pattern in WEIGHTS for path in folder.glob(pattern))
        if not files:
            raise QabenchError(f"the folder {model} has no weights: it contains no file {' or '.join(WEIGHTS)}")
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
    """The path of a model's file: in its folder, in the Hub's cache, or downloaded.

    Raises:
        QabenchError: the file is not available.
    """
    from transformers.utils import cached_file

    try:
        return Path(cached_file(model, name, revision=revision))
    except (OSError, ValueError) as error:
        raise cannot_load(model, error) from error


def cannot_load(model: str, error: Exception) -> QabenchError:
    """The error for a model that is not available or has another architecture."""
    return QabenchError(
        f"the model {model} cannot be loaded ({error}); give the name of a model on the Hub, or a folder"
    )
