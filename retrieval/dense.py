"""Dense retrieval: passages are ranked by the cosine similarity of their vector and the query's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from qabench.io.files import cache_dir, replacing
from qabench.models.encoder import ApiEncoder, SentenceEncoder
from qabench.retrieval.bm25.hits import Hits
from qabench.retrieval.bm25.search import Ints

Encoder = SentenceEncoder | ApiEncoder


class DenseIndex:
    """The vectors of a corpus's passages.

    Passages are ranked by unrounded cosines. Equal texts share one vector, so that their scores are
    equal: in different batches, an encoder gives the same text slightly different vectors.
    """

    def __init__(self, texts: Sequence[str], encoder: Encoder, *, keep: bool = False) -> None:
        self.encoder = encoder
        distinct, self._places = distinct_texts(texts)
        self._vectors = _kept(distinct, encoder) if keep else _encoded(distinct, encoder)

    def __len__(self) -> int:
        return len(self._places)

    def search(self, query: str, k: int) -> Hits:
        """Return the k best passages with their cosines, ties in the order of the corpus."""
        if not len(self):
            return Hits([], [])
        vector = np.asarray(self.encoder.queries([query]), dtype=np.float32)[0]
        scores = (self._vectors @ vector)[self._places]
        best = np.argsort(-scores, kind="stable")[:k]
        return Hits(best.tolist(), scores[best].tolist())


def distinct_texts(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the distinct texts in first-seen order, and the index of each text among them."""
    places: dict[str, int] = {}
    numbers = [places.setdefault(text, len(places)) for text in texts]
    return list(places), np.array(numbers, dtype=np.int64)


def _encoded(texts: Sequence[str], encoder: Encoder) -> Any:
    vectors = encoder.passages(texts) if texts else []
    return np.asarray(vectors, dtype=np.float32)


def _kept(texts: Sequence[str], encoder: Encoder) -> Any:
    """Return the vectors of passages, from disk if this model encoded them before."""
    digest = hashlib.sha256(encoder.name.encode())
    for text in texts:
        # Digests have a fixed length, so two different lists of texts cannot give the same bytes.
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    path = cache_dir() / "vectors" / f"{digest.hexdigest()[:32]}.npy"
    try:
        vectors = np.load(path, allow_pickle=False)
        if vectors.shape[0] == len(texts):
            return vectors
    except (OSError, ValueError, EOFError):
        # The file with the vectors is missing or damaged.
        pass
    vectors = _encoded(texts, encoder)
    with replacing(path) as file:
        np.save(file, vectors, allow_pickle=False)
    return vectors
