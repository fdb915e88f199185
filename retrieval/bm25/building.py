"""Build, extend and shorten an index: read documents in blocks, count their terms, and weigh them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import xxhash

from qabench.errors import InputError
from qabench.retrieval.bm25.counts import TermCounter, TermCounts, ranges
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.search import Array, Floats, Mask, Part, Postings, Results, Search
from qabench.retrieval.bm25.tokenizers import Tokenizer, Words, encode

Row = tuple[str, tuple[str, ...]]  # a document, and its filter values as JSON

ROWS_A_READ = 256
ROWS_A_BLOCK = 8192
CHARACTERS_A_BLOCK = 4_000_000
POSTINGS_PER_STEP = 1 << 14  # few enough that temporary arrays stay in the processor's cache
RARE = 256  # fewer postings than these are weighed together with the postings of other terms
# of the vocabulary, that can be put into a hash table in the time that it saves for a query
TERMS_PER_QUERY = 16
# NumPy takes less time for so many queries of so many documents than importing numba does.
FEW_DOCUMENTS = 4096
FEW_QUERIES = 500


@dataclass(frozen=True)
class Source:
    """Documents to index.

    Attributes:
        data: strings, or a dataset. May be an iterator.
        columns: the text columns of the dataset. None for strings.
        filters: the filter columns.
    """

    data: Any
    columns: list[str] | None = None
    filters: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the dataset in ``datasets``, which changes with its content, or None for other data."""
        return getattr(self.data, "_fingerprint", None) if self.columns else None

    def blocks(self) -> Iterator[list[Row]]:
        """Yield rows in blocks of about four million characters, which limits the memory for streams."""
        block: list[Row] = []
        characters = 0
        for row in self._rows():
            block.append(row)
            characters += len(row[0])
            if characters >= CHARACTERS_A_BLOCK or len(block) >= ROWS_A_BLOCK:
                yield block
                block = []
                characters = 0
        if block:
            yield block

    def digests(self) -> Array:
        """Return a digest of each document and its filter values. uint64."""
        no_rows = np.empty(0, dtype=np.uint64)
        return np.concatenate([no_rows, *map(_digests, self.blocks())])

    def _rows(self) -> Iterator[Row]:
        if self.columns is None:
            for text in checked_strings(self.data, "document"):
                yield text, ()
            return
        names = [*self.columns, *self.filters]
        position = 0
        for batch in _batches(self.data, names):
            _check_columns(f"row {position}", batch, names)
            for row in zip(*map(batch.__getitem__, names), strict=True):
                texts = row[: len(self.columns)]
                values = row[len(self.columns) :]
                if not all(isinstance(text, str) for text in texts):
                    raise InputError(f"row {position} has no text in {', '.join(self.columns)}")
                codes = [as_json(value, f"row {position}") for value in values]
                yield "\n".join(texts), tuple(codes)
                position += 1


@dataclass(frozen=True)
class Origin:
    """The documents of an index.

    Attributes:
        columns: see ``Source``.
        filters: see ``Source``.
        digests: a digest of each document and its filter values. uint64.
        span: the number of positions that were ever given to documents.
        positions: the position of each document, ascending. None if none was removed.
        cache_key: the fingerprint of the dataset in ``datasets``, if the documents are rows of a
            dataset.
    """

    columns: list[str] | None
    filters: tuple[str, ...]
    digests: Array
    span: int
    positions: Array | None = None
    cache_key: str | None = None

    def numbers(self) -> Array:
        """Return the position of each document, ascending."""
        return np.arange(self.span) if self.positions is None else self.positions

    def plus(self, digests: Array) -> Origin:
        """Return the origin with more documents."""
        span = self.span + len(digests)
        positions = self.positions
        if positions is not None:
            positions = np.append(positions, np.arange(self.span, span))
        every = np.append(self.digests, digests)
        return replace(self, digests=every, span=span, positions=positions, cache_key=None)

    def source(self, data: Any) -> Source:
        """Return data as a source of documents of the same kind."""
        return Source(data, self.columns, self.filters)


class Content(NamedTuple):
    """What an index consists of. It is never changed, only replaced."""

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
    counter = TermCounter(tokenizer, parameters.sums_idf, before.scorer.counts if before else None)
    digests = []
    values: list[tuple[str, ...]] = []
    size = 0
    for block in source.blocks():
        digests.append(_digests(block))
        size += len(block)
        counter.add([text for text, _ in block])
        if source.filters:
            values += (row for _, row in block)
        if progress:
            progress(size)
    if before and not size:
        return before
    if not counter.vocabulary:
        raise InputError(f"nothing to index: {size} documents without a single term")
    scorer = InvertedScorer(counter.counts(), parameters)
    new = np.concatenate(digests)
    if before:
        return Content(scorer, before.filters.plus(values), before.origin.plus(new))
    origin = Origin(source.columns, source.filters, new, size, None, source.fingerprint)
    return Content(scorer, Filters.of(source.filters).plus(values), origin)


def without(before: Content, parameters: Parameters, removed: Array) -> Content:
    """Return an index without the documents at some positions.

    Args:
        before: the index. It is not changed.
        parameters: the method and its parameters.
        removed: the positions, distinct.

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
            f"{len(removed)} documents cannot be removed: the {keep.sum()} others are without a single term"
        )
    origin = replace(origin, digests=origin.digests[keep], positions=positions[keep], cache_key=None)
    return Content(InvertedScorer(counts.only(keep), parameters), before.filters.only(keep), origin)


def common_start(first: Array, second: Array) -> int:
    """Return how many documents are the same, from the first one on."""
    size = min(len(first), len(second))
    differs = first[:size] != second[:size]
    return int(np.append(differs, True).argmax())


def _digests(block: Sequence[Row]) -> Array:
    """Return a digest of each row. The filter values are JSON, which has no character 0."""
    parts = ("\0".join((*values, text)) for text, values in block)
    digests = (xxhash.xxh3_64_intdigest(part.encode("utf-8", "surrogatepass")) for part in parts)
    return np.fromiter(digests, dtype=np.uint64, count=len(block))


def checked_strings(texts: Iterable[str], name: str) -> Iterator[str]:
    """Yield documents or queries.

    Args:
        texts: the documents or queries.
        name: "document" or "query", for messages.

    Raises:
        InputError: one is not a string, or ``texts`` is a single string.
    """
    if isinstance(texts, str):
        raise InputError("expected a list of strings, got a single string: put it in a list")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name} {position} is {text!r:.60}; expected a string")
        yield text


def _batches(dataset: Any, names: list[str]) -> Iterator[Mapping[str, list[Any]]]:
    """Yield some rows at a time, by column."""
    if not hasattr(dataset, "iter"):
        for position, row in enumerate(dataset):
            if not isinstance(row, Mapping):
                expected = ", ".join(names)
                raise InputError(
                    f"row {position} is {row!r:.60}; expected a dict with the columns {expected}"
                )
            yield {name: [value] for name, value in row.items()}
        return
    if hasattr(dataset, "data"):  # only these columns, whatever format the user has set
        _check_columns("the dataset", dataset.column_names, names)
        dataset = dataset.select_columns(sorted(set(names))).with_format(None)
    yield from dataset.iter(ROWS_A_READ)


def _check_columns(where: str, columns: Iterable[str], names: list[str]) -> None:
    """Check that all names are columns.

    Args:
        where: the row or dataset, for messages.
        columns: its columns.
        names: the columns that the index needs.

    Raises:
        InputError: a column is missing.
    """
    if missing := [name for name in names if name not in columns]:
        raise InputError(f"{where} has no {missing[0]!r}; the columns are {', '.join(columns)}")


def as_json(value: Any, where: str) -> str:
    """Return a filter value as JSON, which distinguishes 1, 1.0, true and "1".

    Raises InputError for other types.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False)
    raise InputError(
        f"{where}: cannot filter by {value!r:.60}; allowed: strings, numbers, booleans and null"
    )


class InvertedScorer:
    """The inverted index, searched by compiled code if numba is installed (extra ``fast``).

    Args:
        counts: how often each term occurs in each document.
        parameters: the method and its parameters.

    Attributes:
        vocabulary: the number of each term.
        postings: the documents and weights of each term.
    """

    def __init__(self, counts: TermCounts, parameters: Parameters) -> None:
        self.counts = counts
        self.parameters = parameters
        self.vocabulary = counts.vocabulary
        self.postings = weigh(counts, parameters)
        self._search = Search(self.postings)
        self._queries = 0.0  # so far. Infinite once the search is chosen
        self._encoded = 0  # queries in batches so far
        self._table: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
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
    ) -> list[Results]:
        """Return the k best documents in ``mask`` for each query."""
        k = self._prepare(len(texts), k, mask)
        if not k:
            return [([], [])] * len(texts)
        return self._search.top_all(self._part(tokenizer, texts), len(texts), k, mask)

    def _prepare(self, queries: int, k: int, mask: Mask | None) -> int:
        """Choose the search, and return how many documents are returned per query."""
        if self._queries < math.inf:
            self._choose_search(queries)
        return min(k, self.postings.size if mask is None else int(np.count_nonzero(mask)))

    def _part(self, tokenizer: Tokenizer, texts: Sequence[str]) -> Part:
        """Return a function that returns the terms of some texts.

        Compiled, if that saves more time than it costs.
        """
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
        get = self.vocabulary.get
        return [number for term in terms if (number := get(term)) is not None]

    def _choose_search(self, queries: int) -> None:
        """Use the compiled search from now on, if numba is installed and worth importing."""
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
        values: column -> the distinct values, as JSON, in the order of first occurrence.
        codes: column -> each document's value, as a number into ``values``. int32.
    """

    values: dict[str, list[str]]
    codes: dict[str, Array]

    @classmethod
    def of(cls, columns: Sequence[str]) -> Filters:
        """Return the filters of no documents."""
        values: dict[str, list[str]] = {column: [] for column in columns}
        return cls(values, {column: np.empty(0, dtype=np.int32) for column in columns})

    def plus(self, rows: Sequence[Sequence[str]]) -> Filters:
        """Return the filters with more rows, which have one value per column."""
        filters = Filters({}, {})
        for place, column in enumerate(self.values):
            numbers = {value: number for number, value in enumerate(self.values[column])}
            codes = [numbers.setdefault(row[place], len(numbers)) for row in rows]
            filters.values[column] = list(numbers)
            new = np.array(codes, dtype=np.int32)
            filters.codes[column] = np.append(self.codes[column], new)
        return filters

    def only(self, keep: Mask) -> Filters:
        """Return the filters of some documents."""
        return Filters(self.values, {column: codes[keep] for column, codes in self.codes.items()})

    def mask(self, where: Mapping[str, Any]) -> Mask:
        """Return the documents with these values in all of these columns."""
        masks = [self._column_mask(column, allowed) for column, allowed in where.items()]
        if not masks:
            raise InputError("where is empty; it names columns and values, such as {'chapter': 1}")
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
        for value in allowed if isinstance(allowed, list | tuple | set | frozenset) else [allowed]:
            text = as_json(value, f"where, column {column!r}")
            if text not in values:
                examples = ", ".join(values[:10])
                raise InputError(
                    f"no document has {text} in {column!r}; the first values are {examples}"
                )
            codes.append(values.index(text))
        return np.isin(self.codes[column], codes)


def weigh(counts: TermCounts, parameters: Parameters) -> Postings:
    """Return postings, whose weights are computed term by term when a query first has the term.

    The bound of a term's weights needs no weights: it is the weight of the highest count in the
    shortest document.
    """
    starts = counts.starts
    documents = counts.documents
    lengths = counts.lengths
    idf = parameters.idf(len(lengths), np.diff(starts))
    mean_length = float(lengths.sum()) / len(lengths)
    relative = 1 - parameters.b + parameters.b * lengths.astype(np.float64) / mean_length
    base = parameters.base(idf)
    weights = np.empty(len(documents))
    # Except for rounding, no weight is higher than in the shortest document with the term's highest
    # count.
    most = np.maximum.reduceat(counts.counts, starts[:-1])
    bounds = parameters.weights(idf, most, relative[lengths > 0].min())
    highest = bounds - base + (np.abs(bounds) + base) * 1e-12

    def weigh_part(part: Any, idf: Any) -> None:
        weights[part] = parameters.weights(idf, counts.counts[part], relative[documents[part]])

    def compute(terms: Array) -> None:
        frequencies = starts[terms + 1] - starts[terms]
        rare = terms[frequencies < RARE]
        frequent = terms[frequencies >= RARE]
        for first in range(0, len(rare), POSTINGS_PER_STEP // RARE):  # many terms at once
            some = rare[first : first + POSTINGS_PER_STEP // RARE]
            runs = starts[some + 1] - starts[some]
            places = ranges(starts[some], runs)
            weigh_part(places, np.repeat(idf[some], runs))
        for term in frequent.tolist():
            end = int(starts[term + 1])
            for first in range(int(starts[term]), end, POSTINGS_PER_STEP):
                last = min(first + POSTINGS_PER_STEP, end)
                weigh_part(slice(first, last), idf[term])

    return Postings(starts, documents, weights, base, highest, len(lengths), compute)
