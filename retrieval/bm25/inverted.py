"""Counts the terms of documents for the inverted index, with numpy and Arrow instead of Python loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.arrays import Array, Positions
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.postings import Postings, weigh
from qabench.retrieval.bm25.tokenizers import Tokenizer, Words, tokenize

MOST_DOCUMENTS = 2**31 - 1


class TermCounter:
    """Counts the terms of documents, block by block. It stores the counts, not the documents.

    It needs 12 bytes of memory per posting (a term in a document), and the vocabulary.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        # A new term gets the next number, so terms are numbered by first occurrence.
        self.vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
        self.size = 0
        self._lengths: list[Array] = []
        self._blocks: list[tuple[Array, Array, Array, Array]] = []

    def add(self, texts: Sequence[str]) -> None:
        """Counts the terms of more documents."""
        if isinstance(self.tokenizer, Words):
            terms, lengths = self._encode_words(self.tokenizer, texts)
        else:
            terms, lengths = self._encode(tokenize(self.tokenizer, texts))
        if self.size + len(texts) > MOST_DOCUMENTS:
            raise InputError(f"more than {MOST_DOCUMENTS} documents: split them over several indexes")
        # Equal keys are the occurrences of a term in a document. Sorting 32-bit keys takes half the time.
        narrow = (int(terms.max(initial=0)) + 1) * len(texts) < 2**31
        width = np.int32 if narrow else np.int64
        keys: Array = np.multiply(terms, len(texts), dtype=width)
        keys += np.repeat(np.arange(len(texts), dtype=width), lengths)
        keys.sort()
        firsts = np.flatnonzero(_changes(keys))
        counts = np.diff(firsts, append=len(keys)).astype(np.int32)
        numbers, documents = np.divmod(keys[firsts], len(texts))
        documents = documents.astype(np.int32) + np.int32(self.size)
        runs = np.flatnonzero(_changes(numbers))
        self._blocks.append((numbers[runs], np.diff(runs, append=len(numbers)), documents, counts))
        self._lengths.append(lengths)
        self.size += len(texts)

    def postings(self, parameters: Parameters, dtype: str) -> Postings:
        """The inverted index of all documents; the counter is empty afterward.

        Raises:
            InputError: no document has a term.
        """
        if not self.vocabulary:
            raise InputError(f"nothing to index: {self.size} documents without a single term")
        return weigh(*self.counts(), parameters, dtype)

    def counts(self) -> tuple[Array, Positions, Array, Array]:
        """``starts``, ``documents``, ``counts`` and ``lengths`` for ``weigh``; the counter is empty afterward."""
        frequencies = np.zeros(len(self.vocabulary), dtype=np.int64)
        for terms, runs, _, _ in self._blocks:
            frequencies[terms] += runs
        starts = np.concatenate(([0], np.cumsum(frequencies)))
        free = starts[:-1].copy()
        documents = np.empty(starts[-1], dtype=np.int32)
        counts = np.empty(starts[-1], dtype=np.int32)
        self._blocks.reverse()
        while self._blocks:  # frees the memory of each block after it is copied
            terms, runs, block_documents, block_counts = self._blocks.pop()
            shifts = free[terms] - (np.cumsum(runs) - runs)
            places = np.repeat(shifts, runs) + np.arange(len(block_documents))
            documents[places] = block_documents
            counts[places] = block_counts
            free[terms] += runs
        return starts, documents, counts, np.concatenate(self._lengths)

    def _encode(self, tokens: Sequence[Sequence[str]]) -> tuple[Array, Array]:
        lengths = np.fromiter(map(len, tokens), dtype=np.int32, count=len(tokens))
        found = chain.from_iterable(tokens)
        return np.fromiter(map(self.vocabulary.__getitem__, found), dtype=np.int32, count=lengths.sum()), lengths

    def _encode_words(self, tokenizer: Words, texts: Sequence[str]) -> tuple[Array, Array]:
        terms, offsets, distinct = tokenizer.encode(texts)
        numbers = np.array([-1 if term is None else self.vocabulary[term] for term in distinct] or [-1], dtype=np.int32)
        terms = numbers[terms]
        kept = terms >= 0
        if kept.all():
            return terms, np.diff(offsets)
        return terms[kept], np.diff(np.concatenate(([0], np.cumsum(kept)))[offsets])


def _changes(values: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each value differs from the previous one; true for the first value."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes
