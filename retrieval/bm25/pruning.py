"""Finds the candidates for a query's k best documents without reading all postings of its terms.

The remaining terms need not be read once they cannot lift a new document into the top k (Turtle and Flood, Query
evaluation: strategies and optimizations, 1995: "max score"). So the terms that can add the most are read first, and a
few candidates are looked up in the long lists of the frequent terms.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Mask, Positions
from qabench.retrieval.bm25.postings import Postings

LONG = 10_000  # postings of a term; for fewer, pruning is not faster
FEW = 4  # candidates per requested document; with fewer, they are all scored
LOOKUP_COST = 8  # the cost of looking up one candidate in a term's postings, in postings read


class Search:
    """One search. Its scores are gains: the score minus that of a document without any term of the query.

    Args:
        postings: the index; no term of the query may decrease a score.
        times: the query's terms and their counts in the query.
        k: the number of documents, at least 1.
        mask: the documents that may be returned, one boolean per document; None for all.
    """

    def __init__(self, postings: Postings, times: Mapping[int, int], k: int, mask: Mask | None) -> None:
        self.postings = postings
        self.times = times
        self.k = k
        self.mask = mask
        gains = {term: number * float(postings.highest[term]) for term, number in times.items()}
        self.terms = sorted((term for term, gain in gains.items() if gain > 0), key=gains.__getitem__, reverse=True)
        # The most that each term and those after it can add.
        self.left = [*np.cumsum([gains[term] for term in reversed(self.terms)])[::-1].tolist(), 0.0]
        self.bound = 0.0  # at least k documents have this gain
        self.promising = np.empty(0, dtype=np.int32)
        self.least_promising = 0.0
        # n numbers added up in two orders differ by less than n units in the last place of the largest sum.
        numbers = sum(times.values()) + 2
        largest = sum(gains.values()) + sum(number * float(postings.base[term]) for term, number in times.items())
        self.slack = 8 * numbers * float(np.finfo(postings.weights.dtype).eps) * largest

    def candidates(self) -> Positions:
        """Documents, ascending, that include the k best, for any order in which the scores are added up."""
        memory = _Memory.of_this_thread(self.postings.size)
        read: list[int] = []
        try:
            self._read_terms(memory, read)
            found = self._chosen(memory, read)
        except BaseException:
            _Memory.forget()
            raise
        memory.clear(self._documents(read))
        return found if self.bound > self.slack else self._filled(found)

    def _read_terms(self, memory: _Memory, read: list[int]) -> None:
        """Adds up the postings of terms until it is cheaper to look up the remaining terms for the candidates."""
        for number, term in enumerate(self.terms):
            if self.postings.frequency(term) > LONG and read:
                self._try_promising(memory, number)
                least = self.bound - self.left[number] - self.slack
                # Above 0, no document without any of the terms read reaches the bound.
                if least > 0 and memory.count(least, self._documents(read)) * LOOKUP_COST < self.postings.frequency(
                    term
                ):
                    break
            read.append(term)
            documents, weights = self._allowed(term)
            totals = memory.add(documents, weights, float(self.postings.base[term]), self.times[term])
            self._note_promising(memory, documents, totals, self.bound - self.left[number + 1])

    def _chosen(self, memory: _Memory, read: list[int]) -> Positions:
        """The documents that reach the bound, after the gains of the remaining terms were added."""
        first = len(read)
        found = memory.reaching(self.bound - self.left[first] - self.slack, self._documents(read))
        if self.mask is not None:
            found = found[self.mask[found]]
        sums = memory.totals[found]
        for number, term in enumerate(self.terms[first:], first + 1):
            if len(found) <= FEW * self.k:
                return found
            sums = sums + self._gained(term, found)
            self._raise_bound(sums)
            near = sums >= self.bound - self.left[number] - self.slack
            found, sums = found[near], sums[near]
        self._raise_bound(sums)
        return found[sums >= self.bound - self.slack]

    def _allowed(self, term: int) -> tuple[Positions, Array]:
        """The term's postings of the documents that may be returned."""
        documents, weights = self.postings.of(term)
        if self.mask is None:
            return documents, weights
        kept = self.mask[documents]
        return documents[kept], weights[kept]

    def _documents(self, terms: list[int]) -> list[Positions]:
        return [self.postings.of(term)[0] for term in terms]

    def _note_promising(self, memory: _Memory, documents: Positions, totals: Floats, least: float) -> None:
        """Remembers the documents of a term with the highest gains so far, if they can reach the bound."""
        if len(totals) >= self.k:
            self.least_promising = max(self.least_promising, _largest(totals, self.k))
            self.bound = max(self.bound, self.least_promising)
        above = memory.at_least(totals, max(least, self.least_promising))
        self.promising = np.concatenate((self.promising, documents[above]))

    def _try_promising(self, memory: _Memory, number: int) -> None:
        """Raises the bound with the final gains of the most promising documents, which are fast to look up."""
        found = _distinct(self.promising)
        sums = memory.totals[found]
        most = 2 * self.k
        if len(found) > most:
            best = sums >= _largest(sums, most)
            found, sums = found[best], sums[best]
        self.promising = found
        for term in self.terms[number:]:
            sums = sums + self._gained(term, found)
        self._raise_bound(sums)

    def _raise_bound(self, sums: Floats) -> None:
        if len(sums) >= self.k:
            self.bound = max(self.bound, _largest(sums, self.k))

    def _gained(self, term: int, found: Positions) -> Floats:
        """The gains of documents from a term."""
        return self.times[term] * (self.postings.lookup(term, found) - float(self.postings.base[term]))

    def _filled(self, found: Positions) -> Positions:
        """The documents found, with the first documents added in case there are too few others."""
        enough = self.k + len(found)
        first = np.arange(min(enough, self.postings.size)) if self.mask is None else np.flatnonzero(self.mask)[:enough]
        return np.union1d(found, first.astype(np.int32))


class _Memory:
    """Arrays with one element per document, reused by each thread: allocating them takes longer than a search."""

    _threads = threading.local()

    def __init__(self, size: int) -> None:
        self.totals = np.zeros(size)  # all zeros between searches
        self._places = np.empty(size, dtype=np.intp)
        self._gains = np.empty(size)
        self._before = np.empty(size)
        self._flags = np.empty(size, dtype=bool)

    @classmethod
    def of_this_thread(cls, size: int) -> _Memory:
        memory: _Memory | None = getattr(cls._threads, "memory", None)
        if memory is None or len(memory.totals) < size:
            memory = cls._threads.memory = cls(size)
        return memory

    @classmethod
    def forget(cls) -> None:
        """Drops the arrays after an interrupted search, because their totals are not zero."""
        del cls._threads.memory

    def add(self, documents: Positions, weights: Array, base: float, times: int) -> Floats:
        """Adds ``times * (weights - base)`` to the totals of documents; returns them, valid until the next call."""
        size = len(documents)
        places, gains, before = self._places[:size], self._gains[:size], self._before[:size]
        places[:] = documents  # converted once: numpy would do it at each of the two uses
        np.subtract(weights, base, out=gains, dtype=np.float64)
        if times > 1:
            gains *= times
        np.take(self.totals, places, out=before, mode="clip")
        gains += before
        self.totals[places] = gains
        return gains

    def at_least(self, values: Floats, least: float) -> Mask:
        """Whether each value is at least ``least``; valid until the next call."""
        return np.greater_equal(values, least, out=self._flags[: len(values)])

    def reaching(self, least: float, read: list[Positions]) -> Positions:
        """The distinct documents of terms with totals of at least ``least``, ascending."""
        if least > 0 and 8 * sum(map(len, read)) > len(self.totals):
            return np.flatnonzero(self.at_least(self.totals, least)).astype(np.int32)
        parts = [documents[self.totals[documents] >= least] for documents in read] if least > 0 else read
        return _distinct(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int32)

    def count(self, least: float, read: list[Positions]) -> int:
        """An upper bound of the number of documents of terms with totals of at least ``least``."""
        if 8 * sum(map(len, read)) > len(self.totals):
            return int(np.count_nonzero(self.at_least(self.totals, least)))
        return sum(int(np.count_nonzero(self.totals[documents] >= least)) for documents in read)

    def clear(self, read: list[Positions]) -> None:
        """Resets the totals to zero."""
        if 8 * sum(map(len, read)) > len(self.totals):
            self.totals[:] = 0
            return
        for documents in read:
            self.totals[documents] = 0


def _distinct(found: Positions) -> Positions:
    found = np.sort(found)
    return found[np.diff(found, prepend=-1) > 0]


def _largest(values: Floats, k: int) -> float:
    """The k-th largest value."""
    columns = len(values) // 16
    if columns > max(k, 64):
        # Few values are above the k-th largest of the maxima of columns, which is found with a sixteenth of the work.
        values = values[values >= _largest(values[: 16 * columns].reshape(16, columns).max(axis=0), k)]
    return float(np.partition(values, len(values) - k)[len(values) - k])
