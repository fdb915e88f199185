"""Build an index: read documents in blocks, count their terms with NumPy and Arrow, not in loops, and weigh them."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.formulas import Parameters, RankBm25Scorer
from qabench.retrieval.bm25.inverted import InvertedScorer
from qabench.retrieval.bm25.search import Array, Mask, Postings
from qabench.retrieval.bm25.tokenizers import Tokenizer, Words, tokenize

Row = tuple[str, tuple[str, ...]]  # a document, and its filter values as JSON

BACKENDS = ("qabench", "rank_bm25")
ROWS_A_READ = 256
ROWS_A_BLOCK, CHARACTERS_A_BLOCK = 8192, 1_000_000
POSTINGS_PER_STEP = 1 << 18  # few enough that temporary arrays stay in the processor's cache


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
        """Yield rows in blocks of about a million characters, which limits the memory for streams."""
        block: list[Row] = []
        characters = 0
        for row in _texts(self.data) if self.columns is None else _rows(self.data, self.columns, self.filters):
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


@dataclass(frozen=True)
class Content:
    """The content of an index."""

    parameters: Parameters
    tokenizer: Tokenizer
    scorer: InvertedScorer | RankBm25Scorer
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
    digest, size = hashlib.sha256(), 0
    counter = TermCounter(tokenizer)
    documents: list[list[str]] = []
    values: list[tuple[str, ...]] = []
    for block in source.blocks():
        texts = [text for text, _ in block]
        digest.update(_bytes(block))
        size += len(block)
        if backend == "qabench":
            counter.add(texts)
        else:
            documents += tokenize(tokenizer, texts)
        if source.filters:
            values += (row for _, row in block)
        if progress:
            progress(size)
    if not counter.vocabulary and not any(documents):
        raise InputError(f"nothing to index: {size} documents without a single term")
    scorer: InvertedScorer | RankBm25Scorer
    if backend == "qabench":
        scorer = InvertedScorer(weigh(*counter.counts(), parameters), dict(counter.vocabulary))
    else:
        scorer = RankBm25Scorer(documents, parameters)
    cache_key = getattr(source.data, "_fingerprint", None) if source.columns else None
    origin = Origin(size, digest.hexdigest(), source.columns, source.filters, cache_key)
    return Content(parameters, tokenizer, scorer, Filters.of(source.filters, values), origin)


def check_belongs(content: Content, dataset: Any, name: str = "the index") -> None:
    """Raise InputError unless the content was built from this dataset, or from these strings."""
    origin = content.origin
    if origin.cache_key and origin.cache_key == getattr(dataset, "_fingerprint", None):
        return
    size = len(dataset) if hasattr(dataset, "__len__") else None
    if size is None or size == origin.size:
        digest, size = hashlib.sha256(), 0
        for block in Source(dataset, origin.columns, origin.filters).blocks():
            digest.update(_bytes(block))
            size += len(block)
        if digest.hexdigest() == origin.digest:
            return
    columns = "" if origin.columns is None else f" in {', '.join((*origin.columns, *origin.filters))}"
    detail = f"{size} documents, not {origin.size}" if size != origin.size else f"{size} documents, others{columns}"
    raise InputError(f"{name} does not belong to this dataset, which has {detail}: build it again")


def _bytes(block: Sequence[Row]) -> bytes:
    """Return what the digest of documents covers; it does not depend on how they are split into blocks."""
    parts: list[bytes] = []
    for text, values in block:
        for part in (text, *values):
            data = part.encode("utf-8", "surrogatepass")
            parts += (len(data).to_bytes(8, "little"), data)
    return b"".join(parts)


def _texts(texts: Iterable[str]) -> Iterator[Row]:
    if isinstance(texts, str):
        raise InputError("expected a list of strings, got a single string: put it in a list")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"document {position} is {text!r:.60}; expected a string")
        yield text, ()


def _rows(dataset: Any, columns: Sequence[str], filters: Sequence[str]) -> Iterator[Row]:
    position = 0
    for batch in _batches(dataset, [*columns, *filters]):
        for name in (*columns, *filters):
            if name not in batch:
                raise InputError(_no_text(position, columns if name in columns else [name], batch))
        texts = list(zip(*(batch[name] for name in columns), strict=True))
        values = zip(*(batch[name] for name in filters), strict=True) if filters else [()] * len(texts)
        for parts, row in zip(texts, values, strict=True):
            if not all(isinstance(part, str) for part in parts):
                raise InputError(_no_text(position, columns, batch))
            yield "\n".join(parts), tuple(as_json(value, f"row {position}") for value in row)
            position += 1


def _batches(dataset: Any, names: list[str]) -> Iterator[Mapping[str, list[Any]]]:
    columns = getattr(dataset, "column_names", None)
    if isinstance(columns, list) and not set(names) <= set(columns):
        missing = next(name for name in names if name not in columns)
        raise InputError(f"the dataset has no column {missing!r}; the columns are {', '.join(columns)}")
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


def _no_text(position: int, columns: Sequence[str], batch: Mapping[str, Any]) -> str:
    return f"row {position} has no text in {', '.join(columns)}; the columns are {', '.join(batch)}"


def as_json(value: Any, where: str) -> str:
    """Return a filter value as JSON, which distinguishes 1, 1.0, true and "1". Raises InputError for other types."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False)
    raise InputError(f"{where}: cannot filter by {value!r:.60}; allowed: strings, numbers, booleans and null")


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
            raise InputError(
                f"{column!r} is not a filter of the index; its filters are: {names} (set by filters=[...])"
            )
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

    def add(self, texts: Sequence[str]) -> None:
        """Count the terms of more documents."""
        number_of = self.vocabulary.__getitem__
        if type(self.tokenizer) is Words:
            terms, offsets, names = self.tokenizer.encode(texts)
            numbers = np.array([-1 if name is None else number_of(name) for name in names] or [-1], dtype=np.int32)
            terms = numbers[terms]
            present = terms >= 0
            terms = terms[present]
            lengths = np.diff(np.concatenate(([0], np.cumsum(present)))[offsets])
        else:
            tokens = tokenize(self.tokenizer, texts)
            lengths = np.fromiter(map(len, tokens), dtype=np.int32, count=len(tokens))
            terms = np.fromiter(map(number_of, chain.from_iterable(tokens)), dtype=np.int32, count=lengths.sum())
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
