"""The normalizer for runs, which call it from several threads and must not fork."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from qabench.text import Lemmatizer, Normalizer, resolve_lemmatizer
from qabench.text.cache import NormalizedTextCache
from qabench.text.spacy_lemmatizer import SpacyLemmatizer


@functools.lru_cache(maxsize=1)
def _thread(process: int) -> ThreadPoolExecutor:
    """Return the thread of a process: a forked child has none of its parent's threads."""
    return ThreadPoolExecutor(1, thread_name_prefix="qabench-lemmatizer")


class InOneThread:
    """Runs a lemmatizer in a single thread: spaCy's models are not thread-safe, and the memory allocator would keep
    the peak memory of each thread."""

    def __init__(self, lemmatizer: Lemmatizer) -> None:
        self._lemmatizer = lemmatizer
        self.name = lemmatizer.name
        self.key = lemmatizer.key

    def __call__(self, texts: Sequence[str]) -> list[str]:
        return _thread(os.getpid()).submit(self._lemmatizer, texts).result()


def run_normalizer(lemmatizer: str) -> Normalizer:
    """Return the normalizer with a lemmatizer and the user's cache. Raises the errors of ``resolve_lemmatizer``."""
    resolved = resolve_lemmatizer(lemmatizer)
    if isinstance(resolved, SpacyLemmatizer):
        # Forked children would inherit the event loop and the connections of the run.
        resolved = SpacyLemmatizer(resolved.model, workers=1)
    return Normalizer(InOneThread(resolved), NormalizedTextCache.default(hold=True))
