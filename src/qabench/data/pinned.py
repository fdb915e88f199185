"""Pinned upstream files: the table of a benchmark, and the comparison of local files with their digests.

The rows of a dataset on the Hub are one such file of JSON Lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from qabench.data.rows import Json
from qabench.errors import DataError, DigestMismatch, InputError, unknown_name
from qabench.io.files import replacing


@dataclass(frozen=True)
class SourceFile:
    """One upstream file, pinned by commit and content.

    ``path`` is relative to the root of the repository. At least one of ``git_blob_sha1`` and
    ``sha256`` (lowercase hex) is set. ``size`` is in bytes, None if unknown. For a Git LFS file
    (``lfs``), digest and size belong to the content, not to the pointer.
    """

    benchmark: str
    repo: str
    commit: str
    path: str
    license: str
    git_blob_sha1: str | None = None
    sha256: str | None = None
    size: int | None = None
    lfs: bool = False

    def __post_init__(self) -> None:
        if not self.git_blob_sha1 and not self.sha256:
            raise ValueError(f"{self.path}: no digest; give git_blob_sha1, sha256 or both")

    @property
    def url(self) -> str:
        """Return the URL of the published content: GitHub's raw files, or its media server for Git LFS."""
        base = (
            "https://media.githubusercontent.com/media"
            if self.lfs
            else "https://raw.githubusercontent.com"
        )
        return f"{base}/{self.repo}/{self.commit}/{quote(self.path)}"

    @property
    def mirror_path(self) -> PurePosixPath:
        """Return the path of the file in a mirror folder or on a mirror server: OWNER/REPO/PATH."""
        return PurePosixPath(self.repo, self.path)

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.path}"


class SourceTable(dict[str, SourceFile]):
    """All pinned files of a benchmark by path, in the order of the table."""

    def __init__(self, benchmark: str, files: Iterable[SourceFile]) -> None:
        super().__init__((file.path, file) for file in files)
        self.benchmark = benchmark

    def __missing__(self, path: str) -> SourceFile:
        """Raise InputError, which names the most similar path."""
        what = f"{self.benchmark} has no source file"
        raise unknown_name(
            what, path, self, "the paths in its sources.json, or ./ and a file beside it"
        )


def load_table(path: Path, benchmark: str) -> SourceTable:
    """Read a ``sources.json``: ``{"repo", "commit", "license", "files": [{"path", digests, "size", "lfs"}, ...]}``.

    A file can have its own "commit", which replaces the table's.
    """
    table = json.loads(path.read_text(encoding="utf-8"))
    entries = table.pop("files")
    return SourceTable(benchmark, (SourceFile(benchmark, **(table | entry)) for entry in entries))


# A second change within one tick of the file system's clock does not change the timestamps, so the
# digests of a file that has just changed are not cached.
_SETTLED_NS = 100_000_000
_memo: dict[tuple[str | int, ...], str] = {}


def content_digest(path: Path, algorithm: Literal["sha256", "git"]) -> str:
    """Return a digest of a file's content as lowercase hex.

    Git's is its blob id.

    It is cached in this process as long as the file's size, inode and timestamps do not change.
    """
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        stamps = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)
        key = (os.path.abspath(path), *stamps, algorithm)
        if key in _memo:
            return _memo[key]
        settled = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_NS
        head = b"blob %d\0" % stat.st_size
        new = (
            hashlib.sha256
            if algorithm == "sha256"
            else lambda: hashlib.sha1(head, usedforsecurity=False)
        )
        digest = hashlib.file_digest(file, new).hexdigest()
    if settled:
        _memo[key] = digest
    return digest


def find_mismatch(path: Path, source: SourceFile) -> str | None:
    """Return the differences between a file and the pinned content, or None if size and all known digests agree."""
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        return f"size expected {source.size}, got {size} bytes"
    checks: tuple[tuple[str, str | None, Literal["sha256", "git"]], ...] = (
        ("SHA-256", source.sha256, "sha256"),
        ("git blob SHA-1", source.git_blob_sha1, "git"),
    )
    wrong = []
    for name, pinned, algorithm in checks:
        if pinned and (actual := content_digest(path, algorithm)) != pinned:
            wrong.append(f"{name} expected {pinned}, got {actual}")
    return "; ".join(wrong) or None


def mismatch_error(path: Path, source: SourceFile, wrong: str, fix: str) -> DigestMismatch:
    """Return the error for a file with the result ``wrong`` of ``find_mismatch``.

    ``fix`` says how to fix it.
    """
    return DigestMismatch(f"{source}: {path} is not the pinned content: {wrong}. {fix}.")


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
        sha256: the digest of the rows as JSON Lines. None means that they are not pinned.
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
        columns = loaded.column_names if self.columns is None else self.columns
        for name in filter(None, [*names.values(), *columns]):
            if name not in loaded.column_names:
                raise unknown_name(f"{self.path} has no column", name, loaded.column_names)
        unchanged = [name for name in columns if name not in (*COLUMNS, *names.values())]
        ids: Counter[str] = Counter()
        for number, values in enumerate(loaded):
            row = _renamed(values, names, unchanged, f"{self.path}, row {number}")
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
    values: Mapping[str, Any], names: Mapping[str, str], unchanged: Sequence[str], where: str
) -> Json:
    row = {new: values[old] if old else None for new, old in names.items()}
    row |= {name: values[name] for name in unchanged}
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
