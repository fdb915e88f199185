"""Sentence encoders on this machine, by sentence-transformers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from qabench.errors import MissingExtra

MODEL = "BAAI/bge-small-en-v1.5"


class SentenceEncoder:
    """An encoder of sentence-transformers; its vectors have length 1. Safe for several threads, one at a time.

    Args:
        model: a name on the Hub, or a folder. A revision may follow a name: "BAAI/bge-small-en-v1.5@main".
        device: as torch names it; by default a GPU if there is one.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        QabenchError: the model cannot be loaded.
    """

    def __init__(self, model: str = MODEL, device: str | None = None) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtra(f"dense retrieval needs {error.name}: pip install 'qabench[dense]'") from None
        from qabench.models.loader import locate

        name, _, revision = (model, "", "") if Path(model).is_dir() else model.partition("@")
        source = locate(name, revision or None, device=device)
        self.name = source.label
        self.source = str(source)
        self._network = source.sentence_encoder(SentenceTransformer)
        self._lock = threading.Lock()

    def queries(self, texts: Sequence[str]) -> Any:
        """Return the vectors of queries, with the prompt for queries that the model's configuration names."""
        with self._lock:
            return self._network.encode_query(list(texts), normalize_embeddings=True, show_progress_bar=False)

    def passages(self, texts: Sequence[str]) -> Any:
        """Return the vectors of passages."""
        with self._lock:
            return self._network.encode_document(list(texts), normalize_embeddings=True, show_progress_bar=False)


@lru_cache(maxsize=2)
def load_encoder(model: str = MODEL, device: str | None = None) -> SentenceEncoder:
    """Return the encoder of these arguments; loaded once."""
    return SentenceEncoder(model, device)
