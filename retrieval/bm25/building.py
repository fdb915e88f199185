"""Build, extend and shorten an index: read documents in blocks, count their terms, and weigh them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from qabench.data.arguments import checked_where
from qabench.data.containers import is_iterable
from qabench.errors import InputError
from qabench.retrieval.bm25.counts import TermCounter, TermCounts, ranges
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.ids import Ids
from qabench.retrieval.bm25.rows import SKIP, Source, as_json, digests_of, rows_of
from qabench.retrieval.bm25.search import (
    Array,
    BatchResults,
    Floats,
    Mask,
    Part,
    Postings,
    Results,
    Search,
)
from qabench.retrieval.bm25.tokenizers import Tokenizer, Words, encode

# At most this many postings are weighed at once, so that temporary arrays fit in the processor's
# cache.
POSTINGS_PER_STEP = 1 << 14
# The weights of terms with fewer postings than this are computed in one step.
RARE = 256
# A hash table of the vocabulary saves as much time per query as inserting this many terms takes. So
# a table of n terms pays off after n / TERMS_PER_QUERY queries.
TERMS_PER_QUERY = 16
# If a mask allows k or more of the first COUNTED_FIRST documents, the others are not counted.
COUNTED_FIRST = 4096
# The number of filters whose masks are kept.
MASKS_KEPT = 16
# NumPy answers 500 queries on 4,096 documents in the time that importing numba takes.
FEW_DOCUMENTS = 4096
FEW_QUERIES = 500


@dataclass(frozen=True)
class Origin:
    """The documents of an index.

    Attributes:
        columns: see ``Source``.
        filters: see ``Source``.
        digests: for each document, a digest of its text, filter values and id. uint64.
        span: the number of positions so far, including removed documents and skipped rows.
        positions: the position of each document, ascending. None if no document was removed and no
            row was skipped.
        cache_key: the fingerprint of the indexed ``datasets.Dataset``. None for other sources, and
            if the index was changed since.
        id_column: see ``Source.ids``.
        empty: see ``Source``.
        ids: the id of each document. None if there is no column with ids.
    """

    columns: list[str] | None
    filters: tuple[str, ...]
    digests: Array
    span: int
    positions: Array | None = None
    cache_key: str | None = None
    id_column: str | None = None
    empty: str = SKIP
    ids: Ids | None = None

    def numbers(self) -> Array:
        """Return the position of each document, ascending."""
        return np.arange(self.span) if self.positions is None else self.positions

    def plus(self, digests: Array, is_kept: Mask, ids: Sequence[str]) -> Origin:
        """Return the origin with documents added.

        Args:
            digests: the digests of the new documents.
            is_kept: for each new row, whether it is a document (True) or skipped.
            ids: the ids of the new documents. Empty if the index has no ids.
        """
        positions = self.positions
        if positions is not None or not is_kept.all():
            positions = np.append(self.numbers(), self.span + np.flatnonzero(is_kept))
        return replace(
            self,
            digests=np.append(self.digests, digests),
            span=self.span + len(is_kept),
            positions=positions,
            cache_key=None,
            ids=Ids.of(ids, self.ids) if self.id_column else None,
        )

    def only(self, keep: Mask) -> Origin:
        """Return the origin with only the documents that ``keep`` marks."""
        return replace(
            self,
            digests=self.digests[keep],
            positions=self.numbers()[keep],
            cache_key=None,
            ids=self.ids.only(keep) if self.ids else None,
        )

    def source(self, data: Any) -> Source:
        """Return data as a source of documents, with the columns of this origin."""
        if self.columns is not None:
            data = rows_of(data)
        return Source(data, self.columns, self.filters, self.id_column, self.empty)

    def documents_at(self, positions: Sequence[int]) -> Array:
        """Return the document number at each position. Unlike positions, numbers have no gaps."""
        numbers = np.asarray(positions, dtype=np.int64)
        return numbers if self.positions is None else np.searchsorted(self.positions, numbers)


class Content(NamedTuple):
    """The parts of an index. The tuple is never changed, only replaced by another one."""

    scorer: InvertedScorer
    filters: Filters
    origin: Origin


def build(
    source: Source,
    parameters: Parameters,
    tokenizer: Tokenizer,
    progress: Callable[[int], None] | None,
    before: Content | None = None,
) -> Content:
    """Index the documents of a source.

    Args:
        source: the documents.
        parameters: the method and its parameters.
        tokenizer: see ``BM25Index``.
        progress: see ``BM25Index``.
        before: an index of earlier documents, which get the first positions. It is not changed.

    Raises:
        InputError: see ``BM25Index``.
    """
    counts_before = before.scorer.counts if before else None
    counter = TermCounter(tokenizer, parameters.sums_idf, counts_before)
    digests = [np.empty(0, dtype=np.uint64)]
    is_kept = [np.empty(0, dtype=bool)]
    values: list[tuple[str, ...]] = []
    ids: list[str] = []
    size = 0
    for block in source.blocks():
        rows = [row for row in block if row is not None]
        is_kept.append(np.array([row is not None for row in block]))
        digests.append(digests_of(rows))
        size += len(block)
        counter.add([text for text, _, _ in rows])
        if source.filters:
            values += (row_values for _, row_values, _ in rows)
        if source.ids:
            ids += (id for _, _, id in rows)
        if progress:
            progress(size)
    if before and not size:
        return before
    if not counter.vocabulary:
        problem = "no document has a term" if size else "there are no documents"
        raise InputError(f"nothing to index: {problem}")
    origin = Origin(
        source.columns, source.filters, digests[0], 0, id_column=source.ids, empty=source.empty
    )
    filters = Filters.of(source.filters)
    if before:
        origin = before.origin
        filters = before.filters
    origin = origin.plus(np.concatenate(digests), np.concatenate(is_kept), ids)
    if not before:
        origin = replace(origin, cache_key=source.fingerprint)
    return Content(InvertedScorer(counter.total(), parameters), filters.plus(values), origin)


def without(before: Content, parameters: Parameters, removed: Array) -> Content:
    """Return an index without the documents at some positions.

    Args:
        before: the index. It is not changed.
        parameters: the method and its parameters.
        removed: the positions of the documents to remove, distinct.

    Raises:
        InputError: there is no document at a position, or no document with a term would be left.
    """
    origin = before.origin
    positions = origin.numbers()
    if len(absent := np.setdiff1d(removed, positions)):
        raise InputError(
            f"no document at position {absent[0]} can be removed: it was removed before, or never existed"
        )
    keep = np.isin(positions, removed, invert=True)
    counts = before.scorer.counts
    if not keep[counts.documents].any():
        raise InputError(
            f"the positions cannot be removed ({len(removed):,} of {len(keep):,}): no document with a term "
            "would be left"
        )
    scorer = InvertedScorer(counts.only(keep), parameters)
    return Content(scorer, before.filters.only(keep), origin.only(keep))


def common_start(first: Array, second: Array) -> int:
    """Return the length of the common prefix of two arrays of digests."""
    size = min(len(first), len(second))
    differs = first[:size] != second[:size]
    return int(np.append(differs, True).argmax())


class InvertedScorer:
    """The inverted index, searched by compiled code if numba is installed (extra ``fast``).

    Args:
        counts: how often each term occurs in each document.
        parameters: the method and its parameters.

    Attributes:
        vocabulary: term -> its number, from 0.
        postings: the documents and weights of each term.
    """

    def __init__(self, counts: TermCounts, parameters: Parameters) -> None:
        self.counts = counts
        self.parameters = parameters
        self.vocabulary = counts.vocabulary
        self.postings = weigh(counts, parameters)
        self._search = Search(self.postings)
        # The number of queries so far, or infinity once it is decided whether numba is used.
        self._queries = 0.0
        # The number of queries in batches so far, which decides whether a hash table pays off.
        self._encoded = 0
        self._table: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the counts are pickled: weights and rows are recomputed from them.
        return type(self), (self.counts, self.parameters)

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""
        return self._search.scores(self._numbers(terms))

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""
        k = self._prepare(1, k, mask)
        return self._search.top(self._numbers(terms), k, mask) if k else ([], [])

    def top_all(
        self, tokenizer: Tokenizer, texts: Sequence[str], k: int, mask: Mask | None
    ) -> BatchResults:
        """Return the k best documents in ``mask`` for each query, in rows of arrays."""
        k = self._prepare(len(texts), k, mask)
        if not (k and texts):
            return np.empty((len(texts), k), dtype=np.int64), np.empty((len(texts), k))
        return self._search.top_all(self._part(tokenizer, texts), len(texts), k, mask)

    def only_matching(
        self, best: Results, terms: Sequence[str], k: int, mask: Mask | None
    ) -> Results:
        """Return the k best documents in ``mask`` that have a term of the query.

        Args:
            best: the result of ``top``, which may have documents without a term of the query.
            terms: the terms of the query.
            k: see ``top``.
            mask: see ``top``.
        """
        numbers = self._numbers(terms)
        documents = np.array(best[0], dtype=np.int32)
        is_match = self._search.have_a_term(numbers, documents)
        if is_match.all():
            return best
        # A document without a term of the query can rank above a document with one: its score can
        # be equal or, with a negative idf, higher. So only documents in the postings are ranked.
        return self._search.top_matching(numbers, k, mask)

    def _prepare(self, queries: int, k: int, mask: Mask | None) -> int:
        """Choose NumPy or numba, and return the number of hits per query."""
        if self._queries < math.inf:
            self._choose_search(queries)
        if mask is None:
            return min(k, self.postings.size)
        # Most masks allow k of the first documents, so counting all of them is rarely needed.
        if np.count_nonzero(mask[:COUNTED_FIRST]) >= k:
            return k
        return min(k, int(np.count_nonzero(mask)))

    def _part(self, tokenizer: Tokenizer, texts: Sequence[str]) -> Part:
        """Return a function that finds the terms of a range of texts, compiled if it saves time."""
        self._encoded += len(texts)
        if (
            type(tokenizer) is not Words
            or not self._search.compiled
            or self._encoded * TERMS_PER_QUERY < len(self.vocabulary)
        ):
            terms, ends = encode(tokenizer, texts, self.vocabulary.get)
            return lambda first, last: (terms, ends[first : last + 1])
        from qabench.retrieval.bm25.word_table import WordTable, joined

        self._table = table = self._table or WordTable(self.vocabulary)
        data, bounds = joined(tokenizer, texts)
        return lambda first, last: table.encode(data, bounds[first : last + 1])

    def _numbers(self, terms: Sequence[str]) -> list[int]:
        numbers = list(map(self.vocabulary.get, terms))
        return [number for number in numbers if number is not None]

    def _choose_search(self, queries: int) -> None:
        """Switch to the compiled search if numba is installed, and importing it pays off."""
        self._queries += queries
        size = max(self.postings.size, FEW_DOCUMENTS)
        if self._queries * size > FEW_QUERIES * FEW_DOCUMENTS or "numba" in sys.modules:
            self._queries = math.inf
            with suppress(ImportError, RuntimeError):
                from qabench.retrieval.bm25.compiled import CompiledSearch

                self._search = CompiledSearch(self.postings)


@dataclass
class Filters:
    """The values of the filter columns.

    Attributes:
        values: column -> the distinct values, as JSON, in first-seen order.
        codes: column -> for each document, the index of its value in ``values``. int32.
    """

    values: dict[str, list[str]]
    codes: dict[str, Array]
    _masks: dict[tuple[str, tuple[int, ...]], Mask] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, columns: Sequence[str]) -> Filters:
        """Return empty filters, for an index without documents."""
        values: dict[str, list[str]] = {column: [] for column in columns}
        return cls(values, {column: np.empty(0, dtype=np.int32) for column in columns})

    def plus(self, rows: Sequence[Sequence[str]]) -> Filters:
        """Return the filters with rows added. A row has one value per column."""
        filters = Filters({}, {})
        for number_of_column, column in enumerate(self.values):
            numbers = {value: number for number, value in enumerate(self.values[column])}
            codes = [numbers.setdefault(row[number_of_column], len(numbers)) for row in rows]
            filters.values[column] = list(numbers)
            new = np.array(codes, dtype=np.int32)
            filters.codes[column] = np.append(self.codes[column], new)
        return filters

    def only(self, keep: Mask) -> Filters:
        """Return the filters with only the documents that ``keep`` marks."""
        return Filters(self.values, {column: codes[keep] for column, codes in self.codes.items()})

    def mask(self, where: Mapping[str, Any]) -> Mask:
        """Return a mask of the documents with an allowed value in every column of ``where``."""
        columns = checked_where(where).items()
        masks = [self._column_mask(column, allowed) for column, allowed in columns]
        if not masks:
            raise InputError("where is empty; it names columns and values, such as {'chapter': 1}")
        if len(masks) == 1:
            return masks[0]
        mask: Mask = np.logical_and.reduce(masks)
        return mask

    def _column_mask(self, column: str, allowed: Any) -> Mask:
        if column not in self.codes:
            names = ", ".join(self.codes) or "none"
            raise InputError(
                f"{column!r} is not a filter of the index; it has: {names} (set by filters=[...])"
            )
        values = self.values[column]
        codes = []
        for value in _values(allowed):
            text = as_json(value, f"where, column {column!r}")
            if text not in values:
                examples = ", ".join(values[:10])
                raise InputError(
                    f"no document has {text} in {column!r}; the first values are {examples}"
                )
            codes.append(values.index(text))
        # Masks are cached: many queries use the same filter, and comparing the values of all
        # documents takes longer than a query.
        key = column, tuple(codes)
        mask = self._masks.get(key)
        if mask is None:
            mask = np.isin(self.codes[column], codes)
            earlier_masks = self._masks
            if len(earlier_masks) >= MASKS_KEPT:
                earlier_masks = {}
            # The dict is replaced, not changed, because other threads may be reading it.
            self._masks = {**earlier_masks, key: mask}
        return mask


def _values(allowed: Any) -> list[Any]:
    """Return the values that a filter allows: a single value, or the items of a container."""
    is_one = isinstance(allowed, str | bytes | Mapping) or not is_iterable(allowed)
    if is_one:
        return [allowed]
    return list(allowed)


def weigh(counts: TermCounts, parameters: Parameters) -> Postings:
    """Return postings. The weights of a term are computed when a query first contains the term.

    An upper bound of a term's weights is known from the start: the weight that the term's highest
    count would have in the shortest document.
    """
    starts = counts.starts
    documents = counts.documents
    lengths = counts.lengths
    idf = parameters.idf(len(lengths), np.diff(starts))
    mean_length = float(lengths.sum()) / len(lengths)
    relative = 1 - parameters.b + parameters.b * lengths.astype(np.float64) / mean_length
    base = parameters.base(idf)
    weights = np.empty(len(documents))
    # Unless idf is negative, weights grow with the count and fall with the length. So these are
    # upper bounds except for rounding, for which ``highest`` has a margin.
    most = np.maximum.reduceat(counts.counts, starts[:-1])
    bounds = parameters.weights(idf, most, relative[lengths > 0].min())
    highest = bounds - base + (np.abs(bounds) + base) * 1e-12

    def weigh_part(part: Any, idf: Any) -> None:
        weights[part] = parameters.weights(idf, counts.counts[part], relative[documents[part]])

    def compute(terms: Array) -> None:
        frequencies = starts[terms + 1] - starts[terms]
        rare = terms[frequencies < RARE]
        frequent = terms[frequencies >= RARE]
        for first in range(0, len(rare), POSTINGS_PER_STEP // RARE):
            # One NumPy call per rare term would take longer than the computation itself.
            step = rare[first : first + POSTINGS_PER_STEP // RARE]
            frequencies_of_step = starts[step + 1] - starts[step]
            postings = ranges(starts[step], frequencies_of_step)
            weigh_part(postings, np.repeat(idf[step], frequencies_of_step))
        for term in frequent.tolist():
            end = int(starts[term + 1])
            for first in range(int(starts[term]), end, POSTINGS_PER_STEP):
                last = min(first + POSTINGS_PER_STEP, end)
                weigh_part(slice(first, last), idf[term])

    return Postings(starts, documents, weights, base, highest, len(lengths), compute)
