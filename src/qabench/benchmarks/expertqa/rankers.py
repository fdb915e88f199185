"""What ranks passages: BM25, an encoder on this machine, or an embeddings API."""

from __future__ import annotations

from functools import cache

from qabench.errors import InputError
from qabench.retrieval.dense import Encoder

BM25, DENSE, API, AUTO = "bm25", "dense", "api", "auto"


@cache
def encoder_of(ranker: str, encoder: str | None) -> Encoder | None:
    """The encoder of a ranker; None for BM25.

    Args:
        ranker: "bm25", "dense" (an encoder of sentence-transformers on this machine), or "api" (an OpenAI-compatible
            embeddings API).
        encoder: the encoder's name or folder; by default BAAI/bge-small-en-v1.5, or text-embedding-ada-002 of the API.

    Raises:
        InputError: an unknown ranker, or an encoder for BM25.
        MissingExtra, QabenchError: the encoder cannot be loaded, or the API's key is missing.
    """
    if ranker not in (BM25, DENSE, API):
        raise InputError(f"unknown ranker {ranker!r}; allowed: -T ranker=bm25, -T ranker=dense, -T ranker=api")
    if ranker == BM25:
        if encoder:
            raise InputError(f"the encoder {encoder!r} has no effect with ranker=bm25; add -T ranker=dense")
        return None
    if ranker == API:
        from qabench.llm.embeddings import MODEL, ApiEncoder

        return ApiEncoder(encoder or MODEL)
    from qabench.models.encoder import MODEL as LOCAL_MODEL
    from qabench.models.encoder import load_encoder

    return load_encoder(encoder or LOCAL_MODEL)
