"""The retrieval experiment: methods that rank the chunks of each question's chapter.

The source halves each chapter, and splits the halves with llama-index's ``SentenceSplitter`` (500
tokens of OpenAI's cl100k, Punkt sentences, 64 tokens of overlap). ``cut_as_source`` does the same.
The chunks in the dataset's config ``chunks`` are different, and do not need llama-index.

Neural encoders make one vector per chunk (dense), or one per token (ColBERT, late interaction).
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

from qabench.benchmarks.fastbook.answer_components import check_cutoffs
from qabench.data.rows import Json, Row
from qabench.errors import InputError, MissingExtra, QabenchError, unknown_name
from qabench.evaluation.scoring import Question
from qabench.evaluation.signature import digest
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.fastbook.chunks import CHUNK_SIZE, CHUNKER, OVERLAP, cut, doc_id
from qabench.loading_scripts.fastbook.parse import read_chapter, read_keywords
from qabench.models.encoder import MODEL, SentenceEncoder
from qabench.models.loader import ModelSource, locate
from qabench.retrieval.bm25.hits import Hits
from qabench.retrieval.bm25.index import BM25Index
from qabench.retrieval.dense import DenseIndex, distinct_texts

# Maps a config with questions to the configs with the chapters and with the keyword queries.
CONFIGS = {"questions": ("corpus", "keywords"), "sample": ("sample_corpus", "sample_keywords")}
# Maps each method to its default model.
METHODS = {
    "bm25": None,
    "fts": None,
    "dense": MODEL,
    "colbert": "answerdotai/answerai-colbert-small-v1",
}
KINDS = ("question", "keywords")
# A chapter has fewer chunks than this, so one number can encode chapter and position.
MAX_CHUNKS = 10**6
SEARCH = "SELECT rowid, rank FROM chunks WHERE chunks MATCH ? AND chapter = ? ORDER BY rank, rowid LIMIT ?"

Chunks = Mapping[int, Sequence[str]]
"""The chunks of each chapter."""
Query = tuple[int, str]
"""A query: the chapter whose chunks are the candidates, and the text to search for."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The results of a retrieval method.

    Attributes:
        predicted: question id -> the prediction: "passages", "documents" (their ids) and "scores".
        about: the signature fields that describe the retrieval.
    """

    predicted: Mapping[str, Json]
    about: Json


def retrieve(
    questions: Sequence[Question],
    config: str,
    method: str,
    query: str | None,
    k: int,
    model: str | None = None,
) -> Retrieval:
    """Retrieve k chunks for each question, from the question's chapter.

    By default, fts searches for the keywords, as in the source, and other methods for the question.
    ``model`` is an encoder for dense or colbert: NAME, NAME@REVISION or a folder.

    Raises:
        InputError: an unknown method or kind of query, k below 1, or a model for bm25 or fts.
        MissingExtra: a package of the method is not installed.
    """
    check_cutoffs(k)
    if method not in METHODS:
        raise unknown_name("unknown method", method, METHODS)
    if not query:
        # Full-text search works badly with the words of a whole question, so the source searches
        # for keywords.
        query = "keywords" if method == "fts" else "question"
    if query not in KINDS:
        raise unknown_name("unknown query", query, KINDS)
    if model and METHODS[method] is None:
        raise InputError(f"the method {method} uses no model; only dense and colbert do")
    model = model or METHODS[method]
    rows = [question.row for question in questions]
    corpus_config, keywords_config = CONFIGS[config]
    table = dataset_table("fastbook")
    files = (*_files(corpus_config), *_files(keywords_config))
    file_digests = [table.file_digest(name) for name in files]
    chunks = chapter_chunks(config)
    # As in the source, a question's candidates are the chunks of its own chapter.
    ranked = rank(chunks, queries(rows, config, query), method, k, model)
    signed_model = None
    if model:
        signed_model = _signed_name(locate(model))
    about = {
        "corpus": digest(file_digests),
        "chunker": CHUNKER,
        "chunk_size": CHUNK_SIZE,
        "overlap": OVERLAP,
        "method": method,
        "query": query,
        "retriever_model": signed_model,
    }
    predicted = {}
    for row, hits in zip(rows, ranked, strict=True):
        chapter = row["chapter"]
        chunks_of_chapter = chunks[chapter]
        passages = [chunks_of_chapter[position] for position in hits.positions]
        documents = [doc_id(chapter, position) for position in hits.positions]
        predicted[row["id"]] = {
            "passages": passages,
            "documents": documents,
            "scores": list(hits.scores),
        }
    return Retrieval(predicted, about)


def _signed_name(encoder: ModelSource) -> str:
    """Return the name and version of an encoder, for signatures."""
    if encoder.commit is None:
        # Only the folder's name is signed, because its path is private.
        return f"{Path(encoder.name).resolve().name}@{encoder.version}"
    return encoder.label


def _files(config: str) -> Sequence[str]:
    (files,) = dataset_table("fastbook").config(config).splits.values()
    return files


def chapter_chunks(config: str, split: Callable[[str], list[str]] = cut) -> dict[int, list[str]]:
    """Return the chunks of each chapter that a config's questions are about."""
    table = dataset_table("fastbook")
    corpus_config, _ = CONFIGS[config]
    chunks = {}
    for name in _files(corpus_config):
        row = read_chapter(table.open_path(name))
        chunks[row["chapter"]] = split(row["text"])
    return chunks


def cut_as_source(text: str) -> list[str]:
    """Return the source's chunks: each half of the text, split by llama-index.

    Raises:
        MissingExtra: llama-index-core is not installed.
    """
    try:
        from llama_index.core.node_parser import SentenceSplitter
    except ImportError:
        raise MissingExtra(
            "the source's chunks need llama-index: pip install llama-index-core"
        ) from None
    splitter = SentenceSplitter(chunk_size=CHUNK_SIZE, chunk_overlap=OVERLAP)
    chunks: list[str] = []
    # As in the source, the last character of a text of odd length is a third part.
    half = max(1, len(text) // 2)
    for start in range(0, len(text), half):
        chunks += splitter.split_text(text[start : start + half])
    return chunks


def queries(questions: Sequence[Row], config: str, kind: str) -> list[Query]:
    """Return one query per question: its text or its keywords."""
    # If the file has no keywords for a question, its text is the query.
    texts = {row["id"]: row["question_text"] for row in questions}
    if kind == "keywords":
        _, keywords_config = CONFIGS[config]
        for name in _files(keywords_config):
            for keywords in read_keywords(dataset_table("fastbook").open_path(name)):
                texts[keywords["id"]] = keywords["keywords"]
    asked = []
    for row in questions:
        # Most questions and keywords of the dataset are in quotation marks, which the source strips
        # before it searches.
        text = texts[row["id"]].strip("\"'")
        asked.append((row["chapter"], text))
    return asked


def rank(
    chunks: Chunks, queries: Sequence[Query], method: str, k: int, model: str | None = None
) -> list[Hits]:
    """Return the hits of each query: the k best chunks of the query's chapter."""
    if method == "fts":
        return rank_fts(chunks, queries, k)
    build: Callable[[Sequence[str]], Any] = BM25Index
    if method == "dense":
        build = partial(DenseIndex, encoder=SentenceEncoder(str(model)))
    elif method == "colbert":
        build = partial(LateInteractionIndex, encoder=colbert_encoder(str(model)))
    # Each chapter gets its own index, so document frequencies are counted within the chapter.
    # Chapters without a question are not indexed.
    chapters = {chapter for chapter, _ in queries}
    indexes = {chapter: build(chunks[chapter]) for chapter in chapters}
    return [indexes[chapter].search(text, k) for chapter, text in queries]


def match_expression(text: str) -> str:
    """Return the FTS5 query for a text: its words in quotation marks, joined with OR.

    Words are separated by whitespace and commas, as in the source: "deep learning, math" is a query
    of three words, not of two keywords. The query of a text without words is "".
    """
    quoted_words = []
    # In FTS5's syntax, a quotation mark would end the quoted word, so it is removed.
    for run in text.replace('"', "").split():
        word = run.strip(",")
        if any(character.isalnum() for character in word):
            quoted_words.append(f'"{word}"')
    return " OR ".join(quoted_words)


def rank_fts(chunks: Chunks, queries: Sequence[Query], k: int) -> list[Hits]:
    """For each query, rank the chunks of its chapter that contain a query word, by FTS5's BM25.

    FTS5 uses k1 = 1.2 and b = 0.75. One table contains the chunks of all chapters, as in the
    source: document frequencies are those of the whole book, and the column with the chapter's
    number is searched, too. Scores are the negated ``rank``, so higher is better. Ties are broken
    by ascending position. A query without a known word has no results. Raises QabenchError if this
    Python's SQLite does not have FTS5.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE chunks USING fts5(chapter, text)")
        except sqlite3.OperationalError as error:
            raise QabenchError(f"full-text search needs SQLite with FTS5: {error}") from None
        for chapter, texts in chunks.items():
            # The row number encodes chapter and position, so the query needs no join.
            start = chapter * MAX_CHUNKS
            rows = []
            for i, text in enumerate(texts):
                rows.append((start + i, str(chapter), text))
            connection.executemany(
                "INSERT INTO chunks(rowid, chapter, text) VALUES (?, ?, ?)", rows
            )
        hits = []
        for chapter, text in queries:
            positions: list[int] = []
            scores: list[float] = []
            expression = match_expression(text)
            # SQLite reports an error for an empty expression.
            if expression:
                for rowid, bm25 in connection.execute(SEARCH, (expression, str(chapter), k)):
                    positions.append(rowid % MAX_CHUNKS)
                    # FTS5 negates BM25, so that the best match has the lowest rank.
                    scores.append(-bm25)
            hits.append(Hits(positions, scores))
        return hits


class LateInteractionIndex:
    """Chunks with one vector per token. A search computes MaxSim with each chunk.

    Source: Khattab and Zaharia, ColBERT, SIGIR 2020.
    """

    def __init__(self, chunks: Sequence[str], encoder: Any) -> None:
        self.encoder = encoder
        # Short chunks can be equal. Each distinct text is encoded only once.
        distinct, self._places = distinct_texts(chunks)
        self._vectors = encoder.encode_document(distinct, show_progress_bar=False)

    def search(self, query: str, k: int) -> Hits:
        """Return the k best chunks, best first. Ties are in the order of the chunks."""
        vectors = self.encoder.encode_query([query], show_progress_bar=False)
        similarity = self.encoder.similarity(vectors, self._vectors)[0].cpu().numpy()
        scores = np.asarray(similarity, dtype=np.float32)[self._places]
        # A stable sort leaves ties in the order of the chunks.
        best = np.argsort(-scores, kind="stable")[:k]
        return Hits(best.tolist(), scores[best].tolist())


def colbert_encoder(model: str) -> Any:
    """Load a ColBERT checkpoint in the format of sentence-transformers, PyLate or Stanford."""
    try:
        from sentence_transformers import MultiVectorEncoder
    except ImportError:
        raise MissingExtra(
            "ColBERT needs sentence-transformers 6.2 or later: pip install 'qabench[dense]'"
        ) from None
    return locate(model).sentence_encoder(MultiVectorEncoder)
