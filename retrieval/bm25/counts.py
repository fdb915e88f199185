"""The counts of terms in documents.

Terms are counted with NumPy and Arrow instead of loops. Documents can be added and removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from qabench.retrieval.bm25.search import Array, Mask
from qabench.retrieval.bm25.tokenizers import Tokenizer, encode


@dataclass(frozen=True, slots=True)
class TermCounts:
    """A sparse matrix of documents and terms, stored term by term (compressed sparse columns).

    Everything that depends on the whole collection, such as idf, is computed from this matrix, so
    documents can be added and removed.

    Attributes:
        vocabulary: term -> its number, from 0. Every term is in a document.
        starts: the start of each term's postings, and the end of the last. int64, terms + 1.
        documents: document numbers, ascending for each term. int32.
        counts: how often the term occurs in these documents. The narrowest unsigned type.
        places: where the term first occurs in each of these documents. The narrowest unsigned type.
            Empty if the method does not depend on the order of terms.
        lengths: the number of terms in each document. int32.
    """

    vocabulary: dict[str, int]
    starts: Array
    documents: Array
    counts: Array
    places: Array
    lengths: Array

    @property
    def has_places(self) -> bool:
        """Return whether ``places`` are recorded. There is at least one posting."""
        return len(self.places) > 0

    def plus(self, new: TermCounts) -> TermCounts:
        """Return the counts with the documents of ``new``, whose vocabulary continues this one."""
        added = np.diff(new.starts)
        new_terms = len(added) + 1 - len(self.starts)
        ends = np.append(self.starts[1:], np.full(new_terms, self.starts[-1]))
        # New postings follow the old ones of the same term.
        inserted = ranges(ends + new.starts[:-1], added)
        is_old = np.ones(len(self.documents) + len(inserted), dtype=bool)
        is_old[inserted] = False

        def merged(values: Array, more: Array) -> Array:
            both = np.empty(len(is_old), dtype=np.result_type(values, more))
            both[is_old] = values
            both[inserted] = more
            return both

        places = self.places
        if self.has_places:
            places = merged(places, new.places)
        return TermCounts(
            new.vocabulary,
            np.append(0, ends + new.starts[1:]),
            merged(self.documents, new.documents),
            merged(self.counts, new.counts),
            places,
            np.append(self.lengths, new.lengths),
        )

    def only(self, keep: Mask) -> TermCounts:
        """Return the counts of the documents that ``keep`` marks. Renumber documents and terms."""
        # Drop the postings of other documents. ``reduceat`` needs a posting of each term: for a term
        # without any, it would not return 0.
        remaining = keep[self.documents]
        frequencies = np.add.reduceat(remaining, self.starts[:-1], dtype=np.int64)
        numbers = np.cumsum(keep, dtype=np.int32) - np.int32(1)
        documents = numbers[self.documents[remaining]]
        counts = self.counts[remaining]
        places = self.places
        if self.has_places:
            places = places[remaining]

        # Drop terms without postings.
        terms = np.flatnonzero(frequencies)
        frequencies = frequencies[terms]
        starts = np.append(0, np.cumsum(frequencies))

        # Number the terms by their first occurrence in the documents that are kept.
        if self.has_places:
            order = np.lexsort((places[starts[:-1]], documents[starts[:-1]]))
            index = ranges(starts[order], frequencies[order])
            documents = documents[index]
            counts = counts[index]
            places = places[index]
            terms = terms[order]
            starts = np.append(0, np.cumsum(frequencies[order]))
        names = list(self.vocabulary)
        vocabulary = {names[term]: number for number, term in enumerate(terms.tolist())}
        return TermCounts(vocabulary, starts, documents, counts, places, self.lengths[keep])


class _TermBlock(NamedTuple):
    """The postings of some documents, term by term.

    Attributes:
        first: the position of its first document.
        terms: the numbers of its terms, ascending.
        frequencies: the number of postings of each of these terms.
        documents: the positions of documents within the block.
        counts, places: as in ``TermCounts``.
    """

    first: int
    terms: Array
    frequencies: Array
    documents: Array
    counts: Array
    places: Array


class TermCounter:
    """Counts the terms of documents, block by block. It stores the counts, not the documents.

    Besides the vocabulary, this takes 3 bytes of memory per posting (a term in a document), or 5
    with places, and another 5 to 7 bytes while ``total`` merges the blocks.

    Args:
        tokenizer: see ``BM25Index``.
        with_places: whether to record where each term first occurs in each document.
        before: the counts of earlier documents. They are not changed.
    """

    def __init__(
        self, tokenizer: Tokenizer, with_places: bool, before: TermCounts | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.with_places = with_places
        self.before = before
        earlier = before.vocabulary if before else {}
        # A new term gets the next number, so terms are numbered by first occurrence.
        self.vocabulary: defaultdict[str, int] = defaultdict(count(len(earlier)).__next__, earlier)
        self.size = len(before.lengths) if before else 0
        self._lengths: list[Array] = []
        self._blocks: list[_TermBlock] = []

    def add(self, texts: Sequence[str]) -> None:
        """Count the terms of more documents."""
        terms, ends = encode(self.tokenizer, texts, self.vocabulary.__getitem__)
        lengths = np.diff(ends).astype(np.int32)
        # Group the occurrences by term, in the order of the text. NumPy sorts 16-bit integers by
        # radix, which is fast.
        order = np.argsort(terms.astype(np.uint16), kind="stable")
        if len(self.vocabulary) > 1 << 16:
            order = order[np.argsort((terms >> 16).astype(np.uint16)[order], kind="stable")]
        numbers = terms[order]

        # Sorted, the occurrences of a term in a document are adjacent. Count them.
        documents = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)[order]
        firsts = np.flatnonzero(_changes(numbers) | _changes(documents))
        counts = np.diff(firsts, append=len(order))
        numbers = numbers[firsts]
        documents = documents[firsts]
        places = order[firsts] - ends[documents] if self.with_places else firsts[:0]

        # Find where the postings of each term begin. Until the blocks are merged, documents are
        # numbered within the block, so that 16 bits are enough.
        runs = np.flatnonzero(_changes(numbers))
        block = _TermBlock(
            first=self.size,
            terms=numbers[runs],
            frequencies=np.diff(runs, append=len(numbers)),
            documents=_narrow(documents),
            counts=_narrow(counts),
            places=_narrow(places),
        )
        self._blocks.append(block)
        self._lengths.append(lengths)
        self.size += len(texts)

    def total(self) -> TermCounts:
        """Return the counts of all documents. Can be called once, because it frees the blocks."""
        frequencies = np.zeros(len(self.vocabulary), dtype=np.int64)
        for block in self._blocks:
            frequencies[block.terms] += block.frequencies
        starts = np.append(0, np.cumsum(frequencies))

        # Allocate counts and places in the widest type of any block.
        size = starts[-1]
        documents = np.empty(size, dtype=np.int32)
        type_of_counts = np.result_type(*[block.counts.dtype for block in self._blocks])
        counts = np.empty(size, type_of_counts)
        type_of_places = np.result_type(*[block.places.dtype for block in self._blocks])
        places = np.empty(size if self.with_places else 0, type_of_places)

        # Copy the postings of each block after the postings of the same terms in earlier blocks.
        free = starts[:-1].copy()
        self._blocks.reverse()
        while self._blocks:
            # ``pop`` frees the memory of each block after it is copied.
            block = self._blocks.pop()
            index = ranges(free[block.terms], block.frequencies)
            documents[index] = block.documents.astype(np.int32) + np.int32(block.first)
            counts[index] = block.counts
            if self.with_places:
                places[index] = block.places
            free[block.terms] += block.frequencies
        lengths = np.concatenate(self._lengths)
        counted = TermCounts(dict(self.vocabulary), starts, documents, counts, places, lengths)
        return self.before.plus(counted) if self.before else counted


def ranges(starts: Array, lengths: Array) -> Array:
    """Return the concatenation of the integer ranges with these starts and lengths."""
    shifts = starts - (np.cumsum(lengths) - lengths)
    index: Array = np.repeat(shifts, lengths)
    index += np.arange(len(index))
    return index


def _narrow(values: Array) -> Array:
    """Return non-negative values in the narrowest unsigned type that can hold them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _changes(values: Array) -> Mask:
    """Return whether each value differs from the previous one. True for the first value."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes
