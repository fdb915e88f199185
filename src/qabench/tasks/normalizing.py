"""The normaliser inside a run: called from many threads, in a process that must not fork."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from qabench.text import Lemmatizer, Normalizer, resolve_lemmatizer
from qabench.text.cache import NormalizedTextCache
from qabench.text.spacy_lemmatizer import SpacyLemmatizer

_LOCK = threading.Lock()


class OneAtATime:
    """A lemmatizer that one thread at a time uses: spaCy's models are made for no more."""

    def __init__(self, lemmatizer: Lemmatizer) -> None:
        self._lemmatizer = lemmatizer
        self.name = lemmatizer.name
        self.key = lemmatizer.key
        self.official = lemmatizer.official

    def __call__(self, texts: Sequence[str]) -> list[str]:
        with _LOCK:
            return self._lemmatizer(texts)


def run_normalizer(lemmatizer: str) -> Normalizer:
    """The normaliser of that lemmatizer with the user's cache. Raises as ``resolve_lemmatizer``."""
    found = resolve_lemmatizer(lemmatizer)
    if isinstance(found, SpacyLemmatizer):
        # Forked children of a process with an event loop and connections would inherit both.
        found = SpacyLemmatizer(found.model, workers=1)
    return Normalizer(OneAtATime(found), NormalizedTextCache.default())
