"""The passages for ExpertQA's answers: a corpus ranked by BM25 or an encoder, or the index of a search engine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from qabench.benchmarks.expertqa.rankers import BM25, encoder_of
from qabench.errors import InputError
from qabench.retrieval import BM25Index
from qabench.retrieval.dense import DenseIndex, Encoder
from qabench.retrieval.documents import SOURCES, SearchEngine
from qabench.retrieval.engines import open_engine

CHUNK_SIZE, OVERLAP = 1000, 200  # characters, as in the authors' chunks of web pages
READERS = {".jsonl": "json", ".json": "json", ".parquet": "parquet", ".csv": "csv"}


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage, its id in the corpus, and its source: an address or a title; "" if unknown."""

    id: str
    text: str
    source: str = ""

    def cited_as(self, number: int) -> str:
        """The passage in the format of attributions: "[2] https://...", an empty line, the text."""
        return f"[{number}] {self.source}\n\n{self.text}" if self.source else f"[{number}] {self.text}"


@dataclass(frozen=True, slots=True)
class Found:
    """The passages found for a query, best first, and for the web a record of each search; see ``web.record``."""

    passages: Sequence[Passage]
    searches: tuple[Mapping[str, Any], ...] = ()


class Evidence(Protocol):
    """Where passages come from: a corpus, or the web."""

    def find(self, query: str, ranked_by: str, k: int) -> Found:
        """The k best passages for a query; from the web, ranked by another text."""

    def signature(self) -> dict[str, object]:
        """The fields of signatures that say where passages come from."""


@dataclass(frozen=True)
class Passages:
    """The passages of a corpus, and their index. ``name`` identifies the corpus, for signatures."""

    name: str
    rows: Any
    index: BM25Index | DenseIndex
    ranker: str = BM25

    def search(self, query: str, k: int) -> list[Passage]:
        """The k best passages, best first; none if BM25 ranks them and the corpus contains no word of the query."""
        hits = self.index.search(query, k)
        found = hits.positions if any(hits.scores) else []
        return [_passage(self.rows[position], position) for position in found]

    def find(self, query: str, ranked_by: str, k: int) -> Found:
        """The k best passages; ``ranked_by`` is for the web, as a corpus is searched with the query itself."""
        return Found(self.search(query, k))

    def signature(self) -> dict[str, object]:
        """The fields of signatures that say where passages come from."""
        return {"corpus": self.name, "passages": len(self.index), "ranker": self.ranker}


@dataclass(frozen=True)
class EnginePassages:
    """The documents of a search engine's index as passages; they are not split."""

    engine: SearchEngine

    def find(self, query: str, ranked_by: str, k: int) -> Found:
        """The k best passages; ``ranked_by`` is for the web."""
        found = self.engine.search(query, k).documents
        return Found([Passage(document.id, document.text, document.source) for document in found])

    def signature(self) -> dict[str, object]:
        """The fields of signatures that say where passages come from."""
        return {"corpus": self.engine.name, "passages": len(self.engine), "ranker": self.engine.ranker}


@cache
def engine_passages(retriever: str, named_by_user: bool) -> EnginePassages:
    """Open the passages of a search engine; cached. See ``qabench.retrieval.engines.open_engine``."""
    return EnginePassages(open_engine(retriever, named_by_user=named_by_user))


@cache
def load_passages(
    corpus: str,
    index: str | None = None,
    chunk_size: int | None = CHUNK_SIZE,
    overlap: int = OVERLAP,
    ranker: str = BM25,
    encoder: str | None = None,
) -> Passages:
    """Loads a corpus with its index; cached by arguments.

    Args:
        corpus: a file (.jsonl, .json, .csv, .parquet) or a folder of ``Dataset.save_to_disk``, with the column "text"
            and optionally "id", and "url" or "title".
        index: a saved ``BM25Index`` of the corpus's rows, which are then the passages. Without an index, passages are
            split as below, and indexed.
        chunk_size: texts longer than this many characters are split into windows; None: texts are not split.
        overlap: the number of characters that adjacent windows share.
        ranker, encoder: what ranks the passages; see ``encoder_of``. Vectors are kept in qabench's cache.

    Raises:
        InputError: the corpus or index does not exist, the corpus has no column "text", the index is of another
            corpus, or the sizes or the ranker are invalid.
        MissingExtra, QabenchError: the encoder cannot be loaded.
    """
    if chunk_size is not None:
        check_sizes(chunk_size, overlap)
    model = encoder_of(ranker, encoder)
    if index is not None and model:
        raise InputError(f"an index holds BM25's counts, not vectors: leave out -T index, or -T ranker={ranker}")
    rows = _read(Path(corpus))
    if index is not None:
        return Passages(_name(Path(corpus), rows), rows, BM25Index.load(index, rows["text"]))
    if chunk_size is not None and any(isinstance(text, str) and len(text) > chunk_size for text in rows["text"]):
        options = {"size": chunk_size, "overlap": overlap}
        rows = rows.map(_cut, batched=True, with_indices=True, fn_kwargs=options, remove_columns=rows.column_names)
    return _indexed(_name(Path(corpus), rows), rows, model)


def check_sizes(chunk_size: int, overlap: int) -> None:
    """Raises InputError if windows of these sizes cannot be made."""
    if not 0 <= overlap < chunk_size:
        raise InputError(f"the overlap is {overlap}; allowed: 0 to {chunk_size - 1}, less than the chunk size")


def _indexed(name: str, rows: Any, encoder: Encoder | None) -> Passages:
    if encoder is None:
        return Passages(name, rows, BM25Index.from_dataset(rows, "text"))
    texts = [text if isinstance(text, str) else "" for text in rows["text"]]
    return Passages(name, rows, DenseIndex(texts, encoder, keep=True), encoder.name)


def windows(text: str, size: int = CHUNK_SIZE, overlap: int = OVERLAP) -> list[str]:
    """Windows of ``size`` characters; each begins with the last ``overlap`` characters of the previous one."""
    return [text[start : start + size] for start in range(0, max(1, len(text) - overlap), size - overlap)]


def _read(path: Path) -> Any:
    import datasets

    if path.is_dir():
        try:
            rows = datasets.load_from_disk(str(path))
        except FileNotFoundError as error:
            raise InputError(f"the corpus {path} is not a folder of Dataset.save_to_disk: {error}") from None
    elif path.is_file() and path.suffix in READERS:
        try:
            rows = datasets.load_dataset(READERS[path.suffix], data_files=str(path), split="train")
        except datasets.exceptions.DatasetGenerationError as error:
            raise InputError(f"the corpus {path} cannot be read: {error.__cause__ or error}") from error
    else:
        raise InputError(
            f"the corpus is {str(path)!r}; allowed: a file ({', '.join(READERS)}), or a folder of Dataset.save_to_disk"
        )
    if not isinstance(rows, datasets.Dataset) or "text" not in rows.column_names:
        raise InputError(f"the corpus {path} must be one table with a column 'text'; it is {rows!r:.120}")
    return rows


def _cut(batch: Mapping[str, Sequence[Any]], positions: list[int], size: int, overlap: int) -> dict[str, list[str]]:
    names = list(batch)
    made: dict[str, list[str]] = {"id": [], "text": [], "url": []}
    for position, *values in zip(positions, *batch.values(), strict=True):
        passage = _passage(dict(zip(names, values, strict=True)), position)
        parts = windows(passage.text, size, overlap)
        made["id"] += [f"{passage.id}#{n}" if len(parts) > 1 else passage.id for n in range(len(parts))]
        made["text"] += parts
        made["url"] += [passage.source] * len(parts)
    return made


def _passage(row: Mapping[str, Any], position: int) -> Passage:
    given = row.get("id")
    source = next((str(row[name]) for name in SOURCES if row.get(name)), "")
    return Passage(str(position) if given is None else str(given), row["text"], source)


def _name(path: Path, rows: Any) -> str:
    if path.is_dir():
        return f"{path.name}@{rows._fingerprint[:12]}"
    with path.open("rb") as file:
        return f"{path.name}@{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"
