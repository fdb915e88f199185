"""Retrieval with neural encoders: one vector per chunk (dense), or one per token (ColBERT, late interaction).

Both run on sentence-transformers, whose ``MultiVectorEncoder`` reads the checkpoints of PyLate and of Stanford's
ColBERT. (PyLate pins releases of transformers that need huggingface-hub < 2, which qabench cannot use.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from qabench.benchmarks.fastbook.study.queries import Query
from qabench.errors import MissingExtra
from qabench.neural.models import locate
from qabench.retrieval.bm25.index import Hits

DENSE_MODEL = "BAAI/bge-small-en-v1.5"
COLBERT_MODEL = "answerdotai/answerai-colbert-small-v1"
# The vector of a text differs between batches in the last digits, but equal chunks must tie: scores are rounded.
DECIMALS = 5

Corpus = Mapping[int, Sequence[str]]
Scores = Callable[[Sequence[str], Sequence[str]], Any]


def rank_dense(corpus: Corpus, queries: Sequence[Query], k: int, model: str = DENSE_MODEL) -> list[Hits]:
    """The chunks of each query's chapter by cosine similarity of single vectors, with ``Dataset.add_faiss_index``.

    Args:
        corpus: the chunks of each chapter.
        queries: one per question.
        k: the number of chunks to return per query.
        model: a sentence-transformers model: its name on the Hub, or a folder.

    Raises:
        MissingExtra: sentence-transformers or faiss is not installed.
        QabenchError: the model cannot be loaded.
    """
    try:
        import faiss
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra(f"dense retrieval needs {error.name}: pip install 'qabench[dense]'") from None
    encoder = locate(model).sentence_encoder(SentenceTransformer)

    def scores(texts: Sequence[str], chunks: Sequence[str]) -> Any:
        from datasets import Dataset

        vectors = encoder.encode(list(chunks), normalize_embeddings=True, show_progress_bar=False)
        dataset = Dataset.from_dict({"embedding": list(vectors)})
        with _no_bars():
            dataset.add_faiss_index("embedding", metric_type=faiss.METRIC_INNER_PRODUCT)
        asked = encoder.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        # All chunks, so that a tie at the cutoff is broken here and not by faiss.
        found = dataset.search_batch("embedding", np.asarray(asked, dtype=np.float32), k=len(chunks))
        table = np.empty((len(texts), len(chunks)), dtype=np.float32)
        np.put_along_axis(table, np.asarray(found.total_indices), np.asarray(found.total_scores), axis=1)
        return table

    return _by_chapter(corpus, queries, k, scores)


def rank_colbert(corpus: Corpus, queries: Sequence[Query], k: int, model: str = COLBERT_MODEL) -> list[Hits]:
    """The chunks of each query's chapter by late interaction: MaxSim over the vectors of all tokens, without an index.

    Arguments and errors are those of ``rank_dense``; the model is a ColBERT checkpoint of sentence-transformers, PyLate
    or Stanford. Source: Khattab and Zaharia, ColBERT, SIGIR 2020.
    """
    try:
        from sentence_transformers import MultiVectorEncoder
    except ImportError:
        raise MissingExtra("ColBERT needs sentence-transformers 6.2 or later: pip install 'qabench[dense]'") from None
    encoder = locate(model).sentence_encoder(MultiVectorEncoder)

    def scores(texts: Sequence[str], chunks: Sequence[str]) -> Any:
        asked = encoder.encode_query(list(texts), show_progress_bar=False)
        documents = encoder.encode_document(list(chunks), show_progress_bar=False)
        return encoder.similarity(asked, documents).cpu().numpy()

    return _by_chapter(corpus, queries, k, scores)


@contextmanager
def _no_bars() -> Iterator[None]:
    """Hides the progress bar of ``datasets``, which would appear for each chapter."""
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    disabled = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not disabled:
            enable_progress_bars()


def _by_chapter(corpus: Corpus, queries: Sequence[Query], k: int, scores: Scores) -> list[Hits]:
    hits: dict[int, Hits] = {}
    for chapter, chunks in corpus.items():
        asked = [i for i, query in enumerate(queries) if query.chapter == chapter]
        if not asked:
            continue
        table = np.asarray(scores([queries[i].text for i in asked], chunks), dtype=np.float32).round(DECIMALS)
        for i, row in zip(asked, table, strict=True):
            best = np.argsort(-row, kind="stable")[:k]  # stable: ties by ascending position
            hits[i] = Hits(best.tolist(), row[best].tolist())
    return [hits[i] for i in range(len(queries))]
