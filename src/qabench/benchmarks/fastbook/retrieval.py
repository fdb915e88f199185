"""Chunks of chapters, queries, and the retrieval methods that rank the chunks of each query's own chapter.

The source halves each chapter and splits with llama-index's ``SentenceSplitter`` (500 tokens of
OpenAI's cl100k, Punkt sentences, 64 tokens of overlap). ``cut_as_source`` does the same. The
dataset's own chunks do not need llama-index.

Neural encoders have one vector per chunk (dense), or one per token (ColBERT, late interaction).
Both run on sentence-transformers, whose ``MultiVectorEncoder`` reads the checkpoints of PyLate and
of Stanford's ColBERT. (PyLate pins releases of transformers that need huggingface-hub < 2, which
qabench cannot use.)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qabench.data.rows import Row
from qabench.errors import MissingExtra, QabenchError, unknown_name
from qabench.loading_scripts.fastbook.chunks import check_sizes
from qabench.models.encoder import MODEL, SentenceEncoder
from qabench.models.loader import locate
from qabench.retrieval.bm25.index import BM25Index, Hits
from qabench.retrieval.dense import DECIMALS, DenseIndex


def cut_as_source(text: str, size: int = 500, overlap: int | None = None) -> list[str]:
    """Return the source's chunks: each half of the text, split by llama-index's ``SentenceSplitter``.

    Raises:
        InputError: as ``cut``.
        MissingExtra: llama-index-core is not installed.
    """
    overlap = check_sizes(size, overlap)
    try:
        from llama_index.core.node_parser import SentenceSplitter
    except ImportError:
        raise MissingExtra(
            "the source's chunks need llama-index: pip install llama-index-core"
        ) from None
    # as in the source: if the length is odd, the last character is a third part
    half = max(1, len(text) // 2)
    parts = [text[i : i + half] for i in range(0, len(text), half)]
    splitter = SentenceSplitter(chunk_size=size, chunk_overlap=overlap)
    return [chunk for part in parts for chunk in splitter.split_text(part)]


KINDS = ("question", "keywords")
Corpus = Mapping[int, Sequence[str]]
"""The chunks of each chapter."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question's id, the chapter whose chunks are its candidates, and the text to search for."""

    id: str
    chapter: int
    text: str


def make_queries(questions: Sequence[Row], keywords: Mapping[str, str], kind: str) -> list[Query]:
    """Return one query of a kind ("question" or "keywords") per question, without quotes around it, as in the source.

    Raises:
        InputError: an unknown kind.
    """
    if kind not in KINDS:
        raise unknown_name("unknown query", kind, KINDS)
    queries = []
    for row in questions:
        text = keywords[row["id"]] if kind == "keywords" else row["question_text"]
        queries.append(Query(row["id"], row["chapter"], text.strip("\"'")))
    return queries


def match_expression(text: str) -> str:
    """Return the FTS5 query of a text: each of its words quoted, joined with OR, or "" for a text without words.

    Words are separated by whitespace and commas, as in the source: "deep learning, math" is a query
    of three words, not of two keywords.
    """
    words = [word.strip(",") for word in text.replace('"', "").split()]
    return " OR ".join(f'"{word}"' for word in words if any(map(str.isalnum, word)))


MAX_CHUNKS = 10**6  # of a chapter: a row's number says the chapter and the position
SEARCH = "SELECT rowid, rank FROM chunks WHERE chunks MATCH ? AND chapter = ? ORDER BY rank, rowid LIMIT ?"


def rank_fts(corpus: Corpus, queries: Sequence[Query], k: int) -> list[Hits]:
    """Rank the chunks of each query's chapter that contain one of its words, by FTS5's BM25 (k1 1.2, b 0.75).

    One table contains the chunks of all chapters, as in the source: document frequencies are those
    of the whole book, and the column with the chapter's number is searched, too. Scores are the
    negated ``rank``, so higher is better. Ties are broken by ascending position. A query without a
    known word has no results.

    Raises:
        QabenchError: this Python's SQLite does not have FTS5.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE chunks USING fts5(chapter, text)")
        except sqlite3.OperationalError as error:
            raise QabenchError(
                f"full-text search needs SQLite with FTS5; this Python has SQLite {sqlite3.sqlite_version} ({error})"
            ) from None
        for chapter, chunks in corpus.items():
            start = chapter * MAX_CHUNKS
            rows = ((start + i, str(chapter), text) for i, text in enumerate(chunks))
            connection.executemany(
                "INSERT INTO chunks(rowid, chapter, text) VALUES (?, ?, ?)", rows
            )
        hits = []
        for query in queries:
            expression = match_expression(query.text)
            matches = (
                connection.execute(SEARCH, (expression, str(query.chapter), k)).fetchall()
                if expression
                else []
            )
            hits.append(
                Hits(
                    [rowid % MAX_CHUNKS for rowid, _ in matches],
                    [-rank for _, rank in matches],
                )
            )
        return hits


DENSE_MODEL = MODEL
COLBERT_MODEL = "answerdotai/answerai-colbert-small-v1"


class LateInteractionIndex:
    """Chunks with one vector per token, ranked by MaxSim over all of them, without an index.

    Source: Khattab and Zaharia, ColBERT, SIGIR 2020.
    """

    def __init__(self, chunks: Sequence[str], encoder: Any) -> None:
        self.encoder = encoder
        self._vectors = encoder.encode_document(list(chunks), show_progress_bar=False)

    def search(self, query: str, k: int) -> Hits:
        """Return the k best chunks, best first. Ties in the order of the chunks."""
        vectors = self.encoder.encode_query([query], show_progress_bar=False)
        similarity = self.encoder.similarity(vectors, self._vectors)[0].cpu().numpy()
        scores = np.asarray(similarity, dtype=np.float32).round(DECIMALS)
        best = np.argsort(-scores, kind="stable")[:k]
        return Hits(best.tolist(), scores[best].tolist())


def colbert_encoder(model: str) -> Any:
    """Return a ColBERT checkpoint of sentence-transformers, PyLate or Stanford: its name on the Hub, or a folder."""
    try:
        from sentence_transformers import MultiVectorEncoder
    except ImportError:
        raise MissingExtra(
            "ColBERT needs sentence-transformers 6.2 or later: pip install 'qabench[dense]'"
        ) from None
    return locate(model).sentence_encoder(MultiVectorEncoder)


METHODS = ("bm25", "fts", "dense", "colbert")


@dataclass(frozen=True, slots=True)
class Method:
    """A retrieval method, such as "bm25".

    Attributes:
        name: one of METHODS.
        query: the kind of its queries: "question" or "keywords".
        source: the model of "dense" and "colbert": its name on the Hub, or a folder.
    """

    name: str
    query: str
    source: str | None

    @property
    def model(self) -> str | None:
        """The model, for signatures (a folder by its name), or None."""
        return Path(self.source).name if self.source and Path(self.source).is_dir() else self.source

    def rank(self, corpus: Corpus, queries: Sequence[Query], k: int) -> list[Hits]:
        """Return the k best chunks for each query, from its own chapter."""
        if self.name == "fts":
            return rank_fts(corpus, queries, k)
        index = self._index()
        chapters = {query.chapter for query in queries}
        indexes = {chapter: index(corpus[chapter]) for chapter in chapters}
        return [indexes[query.chapter].search(query.text, k) for query in queries]

    def _index(self) -> Callable[[Sequence[str]], Any]:
        if self.name == "bm25":
            return BM25Index
        if self.name == "dense":
            return partial(DenseIndex, encoder=SentenceEncoder(str(self.source)))
        return partial(LateInteractionIndex, encoder=colbert_encoder(str(self.source)))


def parse_method(
    name: str,
    query: str | None = None,
    dense_model: str = DENSE_MODEL,
    colbert_model: str = COLBERT_MODEL,
) -> Method:
    """Return a method by its name.

    By default, fts gets the keywords, as in the source, and the others the question.
    """
    if name not in METHODS:
        raise unknown_name("unknown method", name, METHODS)
    models = {"dense": dense_model, "colbert": colbert_model}
    return Method(name, query or ("keywords" if name == "fts" else "question"), models.get(name))
