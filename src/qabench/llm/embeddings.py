"""Vectors of texts from an OpenAI-compatible embeddings API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qabench.errors import MissingExtra, QabenchError
from qabench.llm.client import reason_of
from qabench.llm.endpoint import resolve_endpoint

MODEL = "text-embedding-ada-002"
BATCH = 256  # texts per call
SECONDS = 120.0


class ApiEncoder:
    """Encodes texts by an API; its vectors have length 1.

    The key and the server are those of judges: FANOUTQA_OPENAI_API_KEY and FANOUTQA_OPENAI_API_BASE.

    Args:
        model: the model's name on the server.
        base_url: an OpenAI-compatible server; see ``resolve_endpoint``.

    Raises:
        MissingExtra: the package openai is not installed.
        QabenchError: the key is missing.
    """

    def __init__(self, model: str = MODEL, base_url: str | None = None) -> None:
        try:
            import openai
        except ImportError:
            raise MissingExtra("an embeddings API needs openai: pip install 'qabench[judge]'") from None
        endpoint = resolve_endpoint(base_url)
        if endpoint.why_unusable:
            raise QabenchError(f"the encoder {model} cannot be used: {endpoint.why_unusable}")
        self.name = model
        self._client = endpoint.openai_client(openai.OpenAI, max_retries=6, timeout=SECONDS)

    def queries(self, texts: Sequence[str]) -> Any:
        """Return the vectors of queries. Raises QabenchError if the API fails."""
        return self._vectors(texts)

    def passages(self, texts: Sequence[str]) -> Any:
        """Return the vectors of passages. Raises QabenchError if the API fails."""
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> Any:
        batches = [list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        vectors = np.array([vector for batch in batches for vector in self._batch(batch)], dtype=np.float32)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)

    def _batch(self, batch: list[str]) -> list[list[float]]:
        import openai

        try:
            response = self._client.embeddings.create(model=self.name, input=batch, encoding_format="float")
        except openai.OpenAIError as error:
            raise QabenchError(f"the encoder {self.name} failed: {reason_of(error).text}") from error
        if len(response.data) != len(batch):
            raise QabenchError(f"the encoder {self.name} returned {len(response.data)} vectors for {len(batch)} texts")
        return [item.embedding for item in sorted(response.data, key=lambda item: item.index)]
