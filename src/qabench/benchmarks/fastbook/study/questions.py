"""The questions of fastbook-benchmark for scoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.fastbook.parse import parse_question
from qabench.loading_scripts.fastbook.read import read_questions
from qabench.sources import compute_digests

CONFIGS = ("questions", "sample")


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions with their answer components.

    Attributes:
        config: "questions" or "sample"; "custom" for a user's file.
        rows: rows of the dataset's config ``questions``.
        digest: the digest of the file's content, for signatures.
    """

    config: str
    rows: Sequence[Mapping[str, Any]]
    digest: str


def load_questions(config: str | None = None, path: Path | None = None) -> Questions:
    """The questions of a config, or of a file in the format of ``fastbook-benchmark.json``.

    Args:
        config: "questions" (the default) or "sample".
        path: a file of questions to use instead of a config.

    Raises:
        InputError: the config has no questions.
        DataError: the file is not in the format of ``fastbook-benchmark.json``.
        SourceError: the data is not available.
    """
    if path is not None:
        found = compute_digests(path, git_blob_sha1=False)
        return Questions("custom", list(map(parse_question, read_questions(path))), (found.sha256 or "")[:12])
    name = config or CONFIGS[0]
    if name not in CONFIGS:
        raise InputError(f"fastbook has no questions in {name!r}; allowed: {', '.join(CONFIGS)}")
    ((file,),) = dataset_table("fastbook").config(name).splits.values()
    rows = list(map(parse_question, read_questions(open_path("fastbook", file))))
    return Questions(name, rows, file_digest("fastbook", file))
