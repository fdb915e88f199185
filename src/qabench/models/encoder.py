"""Sentence encoders: sentence-transformers on this machine, or an OpenAI-compatible embeddings API."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from qabench.errors import MissingExtra, QabenchError
from qabench.io.http_error import reason_of
from qabench.io.limits import Limits
from qabench.llm.endpoint import resolve_endpoint
from qabench.models.loader import locate

MODEL = "BAAI/bge-small-en-v1.5"
API_MODEL = "text-embedding-ada-002"
# Limits for one call of the API.
TEXTS_PER_CALL = 256
LIMITS_OF_A_CALL = Limits(seconds=120.0)
# If a call fails for good, the vectors of all earlier texts are lost, so there are many retries.
RETRIES = 6


class SentenceEncoder:
    """A sentence-transformers encoder.

    Its vectors have length 1. They are rows of float32 arrays (texts, dimensions). Several threads
    may share an encoder, which then serves one at a time.

    Args:
        model: a name on the Hub, or a folder. A revision may follow a name:
            "BAAI/bge-small-en-v1.5@main".

    Raises:
        MissingExtra: sentence-transformers is not installed.
        QabenchError: the model cannot be loaded.
    """

    def __init__(self, model: str = MODEL) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtra(
                f"dense retrieval needs {error.name}: pip install 'qabench[dense]'"
            ) from None

        source = locate(model)
        self.name = source.label
        self._network = source.sentence_encoder(SentenceTransformer)
        self._lock = threading.Lock()

    def queries(self, texts: Sequence[str]) -> Any:
        """Return the vectors of queries. The model's configuration may have a prompt for them."""
        with self._lock:
            return self._network.encode_query(
                list(texts), normalize_embeddings=True, show_progress_bar=False
            )

    def passages(self, texts: Sequence[str]) -> Any:
        """Return the vectors of passages. The model's configuration may have a prompt for them."""
        with self._lock:
            return self._network.encode_document(
                list(texts), normalize_embeddings=True, show_progress_bar=False
            )


class ApiEncoder:
    """An encoder behind an OpenAI-compatible embeddings API.

    Its vectors have length 1. They are rows of float32 arrays (texts, dimensions). The encoder uses
    the key and the server of judges: FANOUTQA_OPENAI_API_KEY and FANOUTQA_OPENAI_API_BASE.

    Raises:
        QabenchError: there is no key, or a call fails after retries.
    """

    def __init__(self, model: str = API_MODEL, base_url: str | None = None) -> None:
        endpoint = resolve_endpoint(base_url)
        from qabench.io.transport import limited_client

        if endpoint.why_unusable:
            raise QabenchError(f"the encoder {model} cannot be used: {endpoint.why_unusable}")
        self.name = model
        self._client = endpoint.openai_client(limited_client(LIMITS_OF_A_CALL), RETRIES)

    def queries(self, texts: Sequence[str]) -> Any:
        """Return the vectors of queries."""
        rows: list[list[float]] = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            rows += self._batch(list(texts[start : start + TEXTS_PER_CALL]))
        vectors = np.array(rows, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        # A vector of zeros stays as it is.
        return vectors / np.maximum(lengths, 1e-12)

    passages = queries

    def _batch(self, batch: list[str]) -> list[list[float]]:
        import openai

        try:
            response = self._client.embeddings.create(
                model=self.name, input=batch, encoding_format="float"
            )
        except openai.OpenAIError as error:
            raise QabenchError(f"the encoder {self.name} failed: {reason_of(error)}") from error
        if len(response.data) != len(batch):
            raise QabenchError(
                f"the encoder {self.name} returned {len(response.data)} vectors for {len(batch)} texts"
            )
        # A server may return the vectors in an order that differs from that of the texts.
        in_order = sorted(response.data, key=lambda item: item.index)
        return [item.embedding for item in in_order]
