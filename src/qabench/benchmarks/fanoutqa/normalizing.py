"""The normaliser inside a run: called from many threads, in a process that must not fork."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from qabench.text import Lemmatizer, Normalizer, resolve_lemmatizer
from qabench.text.cache import NormalizedTextCache
from qabench.text.spacy_lemmatizer import SpacyLemmatizer

_THREAD = ThreadPoolExecutor(1, thread_name_prefix="qabench-lemmatizer")


class InOneThread:
    """A lemmatizer for many threads: spaCy's models are made for one, and in each the allocator would keep what they
    need at their busiest."""

    def __init__(self, lemmatizer: Lemmatizer) -> None:
        self._lemmatizer = lemmatizer
        self.name = lemmatizer.name
        self.key = lemmatizer.key
        self.official = lemmatizer.official

    def __call__(self, texts: Sequence[str]) -> list[str]:
        return _THREAD.submit(self._lemmatizer, texts).result()


def run_normalizer(lemmatizer: str) -> Normalizer:
    """The normaliser of that lemmatizer with the user's cache. Raises as ``resolve_lemmatizer``."""
    found = resolve_lemmatizer(lemmatizer)
    if isinstance(found, SpacyLemmatizer):
        # Forked children of a process with an event loop and connections would inherit both.
        found = SpacyLemmatizer(found.model, workers=1)
    return Normalizer(InOneThread(found), NormalizedTextCache.default())
