"""Pinned upstream files, and the comparison of local files with their digests.

A dataset on the Hub is treated as one such file, with its rows as JSON Lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from qabench.data.rows import Json
from qabench.errors import DataError, InputError, SourceError, check_name
from qabench.io.redaction import printable

# datasets and pyarrow raise these for files with damaged or unexpected content.
UNREADABLE = (ValueError, TypeError, KeyError, NotImplementedError, RecursionError)
# pyarrow's errors can quote whole rows.
MAX_QUOTED_CHARACTERS = 300
# File system timestamps advance in steps of up to some hundredths of a second.
CLOCK_TICK_NS = 100_000_000


@dataclass(frozen=True)
class SourceFile:
    """One upstream file, pinned by commit and content.

    ``path`` is relative to the root of the repository. At least one of ``git_blob_sha1`` and
    ``sha256`` (lowercase hex) is set, except in a ``HubFile`` that is not pinned. ``size`` is in
    bytes, None if unknown. For a Git LFS file (``lfs``), digest and size belong to the content, not
    to the pointer.
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

    @property
    def url(self) -> str:
        """Return the URL of the published content."""
        base = "https://raw.githubusercontent.com"
        if self.lfs:
            # For a file in Git LFS, the other server has only the pointer.
            base = "https://media.githubusercontent.com/media"
        return f"{base}/{self.repo}/{self.commit}/{quote(self.path)}"

    @property
    def mirror_path(self) -> PurePosixPath:
        """Return the path of the file in a mirror folder or on a mirror server: OWNER/REPO/PATH."""
        return PurePosixPath(self.repo, self.path)

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.path}"


def load_table(path: Path, benchmark: str) -> dict[str, SourceFile]:
    """Return the files of a ``sources.json`` by path.

    The format is ``{"repo", "commit", "license", "files": [{"path", digests, "size", "lfs"},
    ...]}``. The entry of a file may have its own "commit", which replaces the table's.
    """
    table = json.loads(path.read_text(encoding="utf-8"))
    files = [SourceFile(benchmark, **(table | entry)) for entry in table.pop("files")]
    for file in files:
        if not file.git_blob_sha1 and not file.sha256:
            raise InputError(f"{path}: {file.path} has no digest; give git_blob_sha1 or sha256")
    return {file.path: file for file in files}


def find_mismatch(path: Path, source: SourceFile) -> str | None:
    """Return the difference between a file and the pinned content, or None if they agree.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        stat = path.stat()
        if source.size not in (None, stat.st_size):
            return f"size expected {source.size}, got {stat.st_size} bytes"
        for pinned, algorithm in ((source.sha256, "sha256"), (source.git_blob_sha1, "git")):
            if pinned and (actual := _digest(path, algorithm, stat)) != pinned:
                return f"{algorithm} expected {pinned}, got {actual}"
    except OSError as error:
        raise SourceError(f"{source}: {path} cannot be read: {error}") from error
    return None


# Path, algorithm, size, timestamps and inode of a file -> the digest of its content.
_digests: dict[tuple[Path, str, int, int, int, int], str] = {}


def _digest(path: Path, algorithm: str, stat: os.stat_result) -> str:
    """Return the SHA-256 or the git blob id of a file's content.

    The digest is cached as long as the file's size, timestamps and inode do not change, unless the
    file has just been changed: a second change within one tick of the clock leaves the timestamps
    as they are.
    """
    key = (path, algorithm, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
    if key in _digests:
        return _digests[key]
    age = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns)
    # Python builds for FIPS refuse SHA-1 unless an argument says that security does not depend on
    # it.
    digest = hashlib.sha256() if algorithm == "sha256" else hashlib.sha1(usedforsecurity=False)
    if algorithm == "git":
        # The id of a git blob is the digest of this header and the content.
        digest.update(b"blob %d\0" % stat.st_size)
    with path.open("rb") as file:
        hexdigest = hashlib.file_digest(file, lambda: digest).hexdigest()
    if age > CLOCK_TICK_NS:
        _digests[key] = hexdigest
    return hexdigest


@dataclass(frozen=True, slots=True)
class HubDataset:
    """The rows of a benchmark in a dataset on the Hub.

    The columns with the id, the question and the answer get the names "id", "question" and
    "answer".

    Attributes:
        path: the dataset, such as "org/name".
        split: the split with the questions.
        question: the column with the question.
        answer: the column with the reference answer.
        id: the column with the ids. "" means the column "id" if there is one. Without a column, an
            id is a digest of the row, so it does not depend on the order.
        config: the config. None for the dataset's default.
        columns: the other columns to keep. None for all. Other columns with the names "id",
            "question" or "answer" are dropped, because the renamed columns take these names.
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
        """Return the file with the rows.

        Its name depends on everything that selects the rows except the revision, which is the
        file's commit.
        """
        selected = json.dumps(astuple(self)[:-2]).encode()
        name = f"{self.split}-{hashlib.sha256(selected).hexdigest()[:8]}.jsonl"
        return HubFile(
            benchmark,
            self.path,
            self.revision or "main",
            name,
            "see its card",
            sha256=self.sha256,
            dataset=self,
        )

    def rows(self) -> Iterator[Json]:
        """Yield the rows as the stock ``datasets`` loads them, with renamed columns.

        Raises:
            OSError: the Hub cannot be reached, and the cache of ``datasets`` does not have the
                rows.
            InputError: the config, the split or a column does not exist, or the dataset's files are
                damaged.
            DataError: a row cannot be read or has no question or answer, or two rows have the same
                id.
        """
        import datasets

        try:
            loaded = datasets.load_dataset(
                self.path, self.config, split=self.split, revision=self.revision
            )
        except OSError:
            # The Hub cannot be reached. Some errors are both OSError and DatasetsError.
            raise
        except (*UNREADABLE, datasets.exceptions.DatasetsError) as error:
            # If the dataset cannot be generated, only the cause of the error has the reason.
            reason = printable(error.__cause__ or error, MAX_QUOTED_CHARACTERS)
            raise InputError(f"{self.path}: {reason}") from None
        present = loaded.column_names
        id = self.id
        if not id and "id" in present:
            id = "id"
        columns = present if self.columns is None else self.columns
        used = ("id", "question", "answer", id, self.question, self.answer)
        for name in filter(None, [self.question, self.answer, id, *columns]):
            check_name(f"{self.path} has no column", name, present)
        ids: Counter[str] = Counter()
        for number, values in self._numbered(loaded):
            where = f"{self.path}, row {number}"
            question, answer = values[self.question], values[self.answer]
            if not isinstance(question, str) or answer is None:
                raise DataError(
                    f"{where}: the column {self.question!r} is not text, or {self.answer!r} is null"
                )
            row = {"id": values[id] if id else None, "question": question, "answer": answer}
            row |= {name: values[name] for name in columns if name not in used}
            try:
                content = json.dumps(row, sort_keys=True).encode()
            except TypeError as error:
                raise DataError(
                    f"{where}: {error}; name the columns to keep with columns=[...]"
                ) from None
            identity = hashlib.sha256(content).hexdigest()[:12]
            if id:
                identity = str(row["id"])
            ids[identity] += 1
            if ids[identity] > 1:
                if id:
                    raise DataError(f"{where}: the id {identity!r} is repeated")
                # Equal rows have equal digests.
                identity += f"-{ids[identity]}"
            yield row | {"id": identity}

    def _numbered(self, loaded: Iterable[Json]) -> Iterator[tuple[int, Json]]:
        """Yield the rows with their numbers from 0.

        Raises:
            DataError: the values of a row are damaged.
        """
        number = -1
        try:
            for number, values in enumerate(loaded):
                yield number, values
        except UNREADABLE as error:
            reason = printable(error, MAX_QUOTED_CHARACTERS)
            raise DataError(f"{self.path}, row {number + 1} cannot be read: {reason}") from None


@dataclass(frozen=True)
class HubFile(SourceFile):
    """The file with the rows of a ``HubDataset``.

    If neither a mirror nor the cache has the file, the rows are read from the Hub and written to
    the cache.
    """

    dataset: HubDataset = HubDataset("")

    @property
    def url(self) -> str:
        """Return the dataset's page on the Hub."""
        from huggingface_hub import constants

        return f"{constants.ENDPOINT}/datasets/{self.repo}/tree/{self.commit}"
