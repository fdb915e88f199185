"""Rows of a dataset on the Hub, as one file of JSON Lines that mirrors and the cache can hold."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from qabench.data.pinned import SourceFile
from qabench.data.rows import Json
from qabench.errors import DataError, InputError, unknown_name
from qabench.io.files import replacing

COLUMNS = ("id", "question", "answer")


@dataclass(frozen=True, slots=True)
class HubDataset:
    """The rows of a benchmark in a dataset on the Hub. Its columns get the names id, question and answer.

    Attributes:
        path: the dataset, such as "org/name".
        split: the split with the questions.
        question: the column with the question.
        answer: the column with the reference answer.
        id: the column with the ids. "" means the column "id" if there is one. Without a column, an
            id is a digest of the row, so it does not depend on the order.
        config: the config. None for the dataset's default.
        columns: the other columns to keep. None for all. A column that is named like one of the
            three is left out.
        revision: the commit. None means that the rows may change.
        sha256: the digest of the rows as JSON Lines. ``qabench new --hub`` writes it.
    """

    path: str
    split: str = "test"
    question: str = "question"
    answer: str = "answer"
    id: str = ""
    config: str | None = None
    columns: Sequence[str] | None = None
    revision: str | None = None
    sha256: str | None = None

    def file(self, benchmark: str) -> HubFile:
        """Return the file of JSON Lines. Its name depends on everything that selects the rows."""
        selected = json.dumps(astuple(self)[:-2]).encode()
        name = f"{self.split}-{hashlib.sha256(selected).hexdigest()[:8]}.jsonl"
        commit = self.revision or "main"
        return HubFile(
            benchmark, self.path, commit, name, "see its card", sha256=self.sha256, dataset=self
        )

    def rows(self) -> Iterator[Json]:
        """Yield the rows as the stock ``datasets`` loads them, with renamed columns.

        Raises:
            OSError: the Hub cannot be reached, and the cache of ``datasets`` does not have them.
            InputError: the config, the split or a column does not exist.
            DataError: a row has no question or answer, or two rows have one id.
        """
        import datasets

        try:
            loaded = datasets.load_dataset(
                self.path, self.config, split=self.split, revision=self.revision
            )
        except ValueError as error:
            raise InputError(f"{self.path}: {error}") from None
        names = {"id": self.id, "question": self.question, "answer": self.answer}
        if not self.id and "id" in loaded.column_names:
            names["id"] = "id"
        others = loaded.column_names if self.columns is None else self.columns
        for name in filter(None, [*names.values(), *others]):
            if name not in loaded.column_names:
                raise unknown_name(f"{self.path} has no column", name, loaded.column_names)
        kept = [name for name in others if name not in (*COLUMNS, *names.values())]
        ids: Counter[str] = Counter()
        for number, values in enumerate(loaded):
            row = _renamed(values, names, kept, f"{self.path}, row {number}")
            ids[row["id"]] += 1
            if ids[row["id"]] > 1:
                if names["id"]:
                    raise DataError(f"{self.path}, row {number}: the id {row['id']!r} is not new")
                row["id"] += f"-{ids[row['id']]}"
            yield row

    def write(self, path: Path) -> None:
        """Write the rows as JSON Lines. Raises as ``rows`` does."""
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows()]
        with replacing(path) as file:
            file.write("".join(lines).encode())


@dataclass(frozen=True)
class HubFile(SourceFile):
    """The file with the rows of a ``HubDataset``: in a mirror, in the cache, or written from the Hub's rows."""

    dataset: HubDataset = HubDataset("")

    def __post_init__(self) -> None:
        """Accept a file without a digest."""

    @property
    def url(self) -> str:
        """Return the dataset's page on the Hub."""
        from huggingface_hub import constants

        return f"{constants.ENDPOINT}/datasets/{self.repo}/tree/{self.commit}"


def _renamed(
    values: Mapping[str, Any], names: Mapping[str, str], kept: Sequence[str], where: str
) -> Json:
    row = {new: values[old] if old else None for new, old in names.items()}
    row |= {name: values[name] for name in kept}
    for name in ("question", "answer"):
        if row[name] is None:
            raise DataError(f"{where}: the column {names[name]!r} is null; choose another split")
    if not isinstance(row["question"], str):
        raise DataError(f"{where}: the column {names['question']!r} is not text")
    try:
        content = json.dumps(row, sort_keys=True).encode()
    except TypeError as error:
        raise DataError(f"{where}: {error}; name the columns to keep with columns=[...]") from None
    row["id"] = str(row["id"]) if names["id"] else hashlib.sha256(content).hexdigest()[:12]
    return row
