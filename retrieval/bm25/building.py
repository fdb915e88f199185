"""Build an index: count the terms of documents, with NumPy and Arrow instead of Python loops, and weigh them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.reading import Filters, Fingerprint, Source, blocks, rows_of_texts
from qabench.retrieval.bm25.scorers import BACKENDS, InvertedScorer, RankBm25Scorer, Scorer
from qabench.retrieval.bm25.search import Array, Mask, Postings
from qabench.retrieval.bm25.tokenizers import Tokenizer, Words, tokenize

MOST_DOCUMENTS = 2**31 - 1
POSTINGS_PER_STEP = 1 << 18  # few enough that temporary arrays stay in the processor's cache


@dataclass(frozen=True)
class Origin:
    """What an index was built from.

    Attributes:
        size: the number of documents.
        digest: the fingerprint of the documents and filter values.
        columns: the text columns of the dataset; None for strings that are not from a dataset.
        filters: the filter columns.
        cache_key: the fingerprint of the dataset in ``datasets``.
    """

    size: int
    digest: str
    columns: list[str] | None
    filters: tuple[str, ...]
    cache_key: str | None


@dataclass(frozen=True)
class Content:
    """The content of an index."""

    parameters: Parameters
    tokenizer: Tokenizer
    scorer: Scorer
    filters: Filters
    origin: Origin


def build(
    source: Source,
    parameters: Parameters,
    tokenizer: Tokenizer,
    backend: str,
    progress: Callable[[int], None] | None,
) -> Content:
    """Index the documents of a source. The arguments and errors are those of ``BM25Index``."""
    if backend not in BACKENDS:
        raise InputError(f"unknown backend {backend!r}; allowed: {', '.join(BACKENDS)}")
    fingerprint = Fingerprint()
    counter = TermCounter(tokenizer)
    documents: list[list[str]] = []
    values: list[tuple[str, ...]] = []
    for block in blocks(source.rows):
        texts = [text for text, _ in block]
        fingerprint.add(block)
        if backend == "qabench":
            counter.add(texts)
        else:
            documents += tokenize(tokenizer, texts)
        if source.filters:
            values += (row for _, row in block)
        if progress:
            progress(fingerprint.size)
    if not counter.vocabulary and not any(documents):
        raise InputError(f"nothing to index: {fingerprint.size} documents without a single term")
    scorer: Scorer
    if backend == "qabench":
        scorer = InvertedScorer(weigh(*counter.counts(), parameters), dict(counter.vocabulary))
    else:
        scorer = RankBm25Scorer(documents, parameters)
    origin = Origin(fingerprint.size, fingerprint.hexdigest(), source.columns, source.filters, source.cache_key)
    return Content(parameters, tokenizer, scorer, Filters.of(source.filters, values), origin)


def check_belongs(content: Content, dataset: Any, name: str = "the index") -> None:
    """Raise InputError unless the content was built from this dataset, or from these strings."""
    origin = content.origin
    if origin.cache_key and origin.cache_key == getattr(dataset, "_fingerprint", None):
        return
    size = len(dataset) if hasattr(dataset, "__len__") else None
    if size is None or size == origin.size:
        if origin.columns is None:
            source = Source(rows_of_texts(dataset))
        else:
            source = Source.of_dataset(dataset, origin.columns, origin.filters)
        fingerprint = Fingerprint()
        for block in blocks(source.rows):
            fingerprint.add(block)
        size = fingerprint.size
        if fingerprint.hexdigest() == origin.digest:
            return
    columns = "" if origin.columns is None else f" in {', '.join((*origin.columns, *origin.filters))}"
    detail = f"{size} documents, not {origin.size}" if size != origin.size else f"{size} documents, others{columns}"
    raise InputError(f"{name} does not belong to this dataset, which has {detail}: build it again")


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
        """Count the terms of more documents."""
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

    def counts(self) -> tuple[Array, Array, Array, Array]:
        """Return ``starts``, ``documents``, ``counts`` and ``lengths`` for ``weigh``, and empty the counter."""
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
        terms = map(self.vocabulary.__getitem__, chain.from_iterable(tokens))
        return np.fromiter(terms, dtype=np.int32, count=lengths.sum()), lengths

    def _encode_words(self, tokenizer: Words, texts: Sequence[str]) -> tuple[Array, Array]:
        terms, offsets, distinct = tokenizer.encode(texts)
        numbers = np.array([-1 if term is None else self.vocabulary[term] for term in distinct] or [-1], dtype=np.int32)
        terms = numbers[terms]
        present = terms >= 0
        if present.all():
            return terms, np.diff(offsets)
        return terms[present], np.diff(np.concatenate(([0], np.cumsum(present)))[offsets])


def _changes(values: Array) -> Mask:
    """Return whether each value differs from the previous one; true for the first value."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def weigh(starts: Array, documents: Array, counts: Array, lengths: Array, parameters: Parameters) -> Postings:
    """Compute the weights of postings from the counts of each term in each document."""
    frequencies = np.diff(starts)
    idf = parameters.idf(len(lengths), frequencies)
    relative = parameters.relative_lengths(lengths, float(lengths.sum()) / len(lengths))
    base = parameters.base(idf)
    weights = np.empty(len(documents))
    highest = np.empty(len(idf))
    first = 0
    while first < len(idf):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + POSTINGS_PER_STEP)) - 1)
        part = slice(starts[first], starts[last])
        each = np.repeat(idf[first:last], frequencies[first:last])
        weights[part] = parameters.weights(each, counts[part], relative[documents[part]])
        begins = starts[first:last] - starts[first]
        highest[first:last] = np.maximum.reduceat(weights[part], begins) - base[first:last]
        first = last
    return Postings(starts, documents, weights, base, highest, len(lengths))
