"""Build an index: read documents in blocks, count their terms with NumPy and Arrow, not in loops, and weigh them."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.formulas import RANK_BM25, Parameters, RankBm25Search
from qabench.retrieval.bm25.search import Array, Floats, Mask, Postings, Results, Search
from qabench.retrieval.bm25.tokenizers import Tokenizer, encode

Row = tuple[str, tuple[str, ...]]  # a document, and its filter values as JSON

ROWS_A_READ = 256
ROWS_A_BLOCK, CHARACTERS_A_BLOCK = 8192, 4_000_000
POSTINGS_PER_STEP = 1 << 18  # few enough that temporary arrays stay in the processor's cache
FEW_DOCUMENTS, FEW_QUERIES = 4096, 500  # for both, NumPy takes less time than importing numba


@dataclass(frozen=True)
class Source:
    """Documents to index.

    Attributes:
        data: strings, or a dataset; may be an iterator.
        columns: the text columns of the dataset; None for strings.
        filters: the filter columns.
    """

    data: Any
    columns: list[str] | None = None
    filters: tuple[str, ...] = ()

    def blocks(self) -> Iterator[list[Row]]:
        """Yield rows in blocks of about four million characters, which limits the memory for streams."""
        block: list[Row] = []
        characters = 0
        texts = ((text, ()) for text in checked_strings(self.data, "document"))
        for row in texts if self.columns is None else _rows(self.data, self.columns, self.filters):
            block.append(row)
            characters += len(row[0])
            if characters >= CHARACTERS_A_BLOCK or len(block) >= ROWS_A_BLOCK:
                yield block
                block, characters = [], 0
        if block:
            yield block


@dataclass(frozen=True)
class Origin:
    """What an index was built from; ``columns`` and ``filters`` are those of ``Source``."""

    size: int  # documents
    digest: str
    columns: list[str] | None
    filters: tuple[str, ...]
    cache_key: str | None  # the fingerprint of the dataset in ``datasets``


def build(
    source: Source, parameters: Parameters, tokenizer: Tokenizer, backend: str, progress: Callable[[int], None] | None
) -> tuple[InvertedScorer, Filters, Origin]:
    """Index the documents of a source. The arguments and errors are those of ``BM25Index``."""
    if backend != "qabench" and (backend != "rank_bm25" or parameters.method not in RANK_BM25):
        raise InputError(f"the backend is {backend!r}; allowed: qabench, or rank_bm25 with {', '.join(RANK_BM25)}")
    digest, size = hashlib.sha256(), 0
    documents: list[list[int]] = []
    counter = TermCounter(tokenizer)
    values: list[tuple[str, ...]] = []
    for block in source.blocks():
        digest.update(_bytes(block))
        size += len(block)
        terms, ends = counter.add([text for text, _ in block])
        if backend == "rank_bm25":
            documents += [terms[start:end].tolist() for start, end in pairwise(ends)]
        if source.filters:
            values += (row for _, row in block)
        if progress:
            progress(size)
    if not counter.vocabulary:
        raise InputError(f"nothing to index: {size} documents without a single term")
    cache_key = getattr(source.data, "_fingerprint", None) if source.columns else None
    origin = Origin(size, digest.hexdigest(), source.columns, source.filters, cache_key)
    postings = weigh(*counter.counts(), parameters)
    search = RankBm25Search(postings, documents, parameters) if documents else None
    return InvertedScorer(postings, dict(counter.vocabulary), search), Filters.of(source.filters, values), origin


def check_belongs(origin: Origin, dataset: Any) -> None:
    """Raise InputError unless an index was built from this dataset, or from these strings."""
    if origin.cache_key and origin.cache_key == getattr(dataset, "_fingerprint", None):
        return
    digest, size = hashlib.sha256(), 0
    for block in Source(dataset, origin.columns, origin.filters).blocks():
        digest.update(_bytes(block))
        size += len(block)
    if digest.hexdigest() != origin.digest:
        columns = "" if origin.columns is None else f" in {', '.join((*origin.columns, *origin.filters))}"
        detail = f"{size} documents, not {origin.size}" if size != origin.size else f"{size} documents, others{columns}"
        raise InputError(f"the index does not belong to this dataset, which has {detail}: build it again")


def _bytes(block: Sequence[Row]) -> bytes:
    """Return what the digest of documents covers; it does not depend on how they are split into blocks."""
    parts: list[bytes] = []
    for text, values in block:
        for part in (text, *values):
            data = part.encode("utf-8", "surrogatepass")
            parts += (len(data).to_bytes(8, "little"), data)
    return b"".join(parts)


def checked_strings(texts: Iterable[str], name: str) -> Iterator[str]:
    """Yield documents or queries. Raises InputError if one is not a string, and names it."""
    if isinstance(texts, str):
        raise InputError("expected a list of strings, got a single string: put it in a list")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name} {position} is {text!r:.60}; expected a string")
        yield text


def _rows(dataset: Any, columns: Sequence[str], filters: Sequence[str]) -> Iterator[Row]:
    position = 0
    for batch in _batches(dataset, [*columns, *filters]):
        for name in (*columns, *filters):
            if name not in batch:
                raise InputError(f"row {position} has no {name!r}; the columns are {', '.join(batch)}")
        for row in zip(*(batch[name] for name in (*columns, *filters)), strict=True):
            parts, values = row[: len(columns)], row[len(columns) :]
            if not all(isinstance(part, str) for part in parts):
                raise InputError(f"row {position} has no text in {', '.join(columns)}")
            yield "\n".join(parts), tuple(as_json(value, f"row {position}") for value in values)
            position += 1


def _batches(dataset: Any, names: list[str]) -> Iterator[Mapping[str, list[Any]]]:
    columns = getattr(dataset, "column_names", None)
    if isinstance(columns, list) and (missing := [name for name in names if name not in columns]):
        raise InputError(f"the dataset has no column {missing[0]!r}; the columns are {', '.join(columns)}")
    if not hasattr(dataset, "iter"):
        for position, row in enumerate(dataset):
            if not isinstance(row, Mapping):
                raise InputError(f"row {position} is {row!r:.60}; expected a dict with the columns {', '.join(names)}")
            yield {name: [value] for name, value in row.items()}
    elif hasattr(dataset, "data"):  # an Arrow table: reads only these columns, in any format that the user has set
        for table in dataset.select_columns(list(dict.fromkeys(names))).with_format("arrow").iter(ROWS_A_READ):
            yield {name: table.column(name).to_pylist() for name in table.column_names}
    else:
        yield from dataset.iter(ROWS_A_READ)


def as_json(value: Any, where: str) -> str:
    """Return a filter value as JSON, which distinguishes 1, 1.0, true and "1". Raises InputError for other types."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False)
    raise InputError(f"{where}: cannot filter by {value!r:.60}; allowed: strings, numbers, booleans and null")


class InvertedScorer:
    """The inverted index, searched by compiled code if numba is installed (extra ``fast``)."""

    def __init__(self, postings: Postings, vocabulary: dict[str, int], search: Search | None = None) -> None:
        self.postings = postings
        self.vocabulary = vocabulary
        self._search = search or Search(postings)
        self._queries = math.inf if search else 0.0  # so far; infinite once the search is chosen

    def __reduce__(self) -> tuple[Any, ...]:
        return InvertedScorer, (self.postings, self.vocabulary)

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""
        return self._search.scores(self._numbers(terms))

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""
        k = min(k, self.postings.size if mask is None else int(np.count_nonzero(mask)))
        if self._queries < math.inf:
            self._choose_search(1)
        return self._search.top(self._numbers(terms), k, mask) if k else ([], [])

    def top_all(self, terms: Array, ends: Array, k: int, mask: Mask | None) -> list[Results]:
        """Call ``Search.top_all``."""
        k = min(k, self.postings.size if mask is None else int(np.count_nonzero(mask)))
        if self._queries < math.inf:
            self._choose_search(len(ends) - 1)
        return self._search.top_all(terms, ends, k, mask) if k else [([], [])] * (len(ends) - 1)

    def _numbers(self, terms: Sequence[str]) -> list[int]:
        get = self.vocabulary.get
        return [number for term in terms if (number := get(term)) is not None]

    def _choose_search(self, queries: int) -> None:
        """Use the compiled search from now on, if numba is installed and worth importing."""
        self._queries += queries
        if self.postings.size > FEW_DOCUMENTS or self._queries > FEW_QUERIES or "numba" in sys.modules:
            self._queries = math.inf
            with suppress(ImportError, RuntimeError):
                from qabench.retrieval.bm25.compiled import CompiledSearch

                self._search = CompiledSearch(self.postings)


@dataclass
class Filters:
    """The values of the filter columns, by column."""

    values: dict[str, list[str]]  # the distinct values, as JSON, in the order of first occurrence
    codes: dict[str, Array]  # each document's value, as a number into ``values``; int32

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Filters:
        """Return the filters from rows with one value per column."""
        filters = cls({}, {})
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            numbers: dict[str, int] = {}
            codes = [numbers.setdefault(value, len(numbers)) for value in values]
            filters.values[column] = list(numbers)
            filters.codes[column] = np.array(codes, dtype=np.int32)
        return filters

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
            raise InputError(f"{column!r} is not a filter of the index; it has: {names} (set by filters=[...])")
        values = self.values[column]
        codes = []
        for value in allowed if isinstance(allowed, list | tuple | set | frozenset) else [allowed]:
            text = as_json(value, f"where, column {column!r}")
            if text not in values:
                examples = ", ".join(values[:10]) + (", ..." if len(values) > 10 else "")
                raise InputError(f"no document has {text} in {column!r}; the values are {examples}")
            codes.append(values.index(text))
        return np.isin(self.codes[column], codes)


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

    def add(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """Count the terms of more documents, and return their numbers; see ``encode``."""
        terms, ends = encode(self.tokenizer, texts, self.vocabulary.__getitem__)
        lengths = np.diff(ends)
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
        return terms, ends

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


def _changes(values: Array) -> Mask:
    """Return whether each value differs from the previous one; true for the first value."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def weigh(starts: Array, documents: Array, counts: Array, lengths: Array, parameters: Parameters) -> Postings:
    """Compute the weights of postings from the counts of each term in each document."""
    frequencies = np.diff(starts)
    idf = parameters.idf(len(lengths), frequencies)
    relative = 1 - parameters.b + parameters.b * lengths.astype(np.float64) / (float(lengths.sum()) / len(lengths))
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
