"""The questions and reference answers to train on and to answer."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import datasets
from settings import Recipe

import qabench
from qabench.errors import InputError

COLUMNS = ["example_id", "question", "answer"]


def load_rows(recipe: Recipe, split: str, file: str | None = None) -> Any:
    """Return the rows of a split, or of a custom file in the authors' format.

    ``datasets.load_dataset`` is asked first. If the Hub is not reachable or does not have the
    dataset, ``qabench.load_dataset`` reads the same rows from the authors' files (from a mirror,
    the cache, or their server) and verifies their digests.

    Raises:
        InputError: a file that does not exist, or an unknown config or split.
        SourceError: the data is not available.
    """
    if file is not None:
        rows = qabench.load_dataset(
            "expertqa", recipe.dataset_config, split=split, data_files={split: Path(file)}
        )
        return rows.select_columns(COLUMNS)
    try:
        rows = datasets.load_dataset(recipe.dataset, recipe.dataset_config, split=split)
    except (OSError, ValueError) as error:
        # The dataset is not on the Hub, or there is no network and it is not in the cache.
        if recipe.dataset.removeprefix("qabench/") != "expertqa":
            raise InputError(
                f"cannot load {recipe.dataset} {recipe.dataset_config}: {error}"
            ) from error
        rows = qabench.load_dataset("expertqa", recipe.dataset_config, split=split)
    return rows.select_columns(COLUMNS)


def digest_of(rows: Any) -> str:
    """Return twelve hex digits of the SHA-256 of all rows, in order."""
    total = hashlib.sha256()
    for row in rows:
        values = [row[name] for name in COLUMNS]
        text = json.dumps(values, ensure_ascii=False)
        total.update(text.encode("utf-8", "surrogatepass"))
    return total.hexdigest()[:12]
