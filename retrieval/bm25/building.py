"""Building the content of an index, and checking whether an index belongs to a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qabench.errors import InputError
from qabench.retrieval.bm25.backends import BACKENDS, Bm25sScorer, InvertedScorer, RankBm25Scorer, Scorer
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.inverted import TermCounter
from qabench.retrieval.bm25.reading import Filters, Fingerprint, Source, blocks
from qabench.retrieval.bm25.tokenizers import Tokenizer, tokenize

DTYPES = ("float64", "float32")


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

    @property
    def size(self) -> int:
        """The number of documents."""
        return self.origin.size


def build(
    source: Source,
    parameters: Parameters,
    tokenizer: Tokenizer,
    backend: str,
    dtype: str,
    progress: Callable[[int], None] | None,
) -> Content:
    """Indexes the documents of a source. The arguments and errors are those of ``BM25Index``."""
    if backend not in BACKENDS:
        raise InputError(f"unknown backend {backend!r}; allowed: {', '.join(BACKENDS)}")
    if dtype not in DTYPES:
        raise InputError(f"unknown dtype {dtype!r}; allowed: {', '.join(DTYPES)}")
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
    scorer: Scorer
    if backend == "qabench":
        scorer = InvertedScorer(counter.postings(parameters, dtype), dict(counter.vocabulary))
    else:
        scorer = _foreign(backend, documents, parameters, dtype)
    origin = Origin(fingerprint.size, fingerprint.hexdigest(), source.columns, source.filters, source.cache_key)
    return Content(parameters, tokenizer, scorer, Filters.of(source.filters, values), origin)


def _foreign(backend: str, documents: list[list[str]], parameters: Parameters, dtype: str) -> Scorer:
    if not any(documents):
        raise InputError(f"nothing to index: {len(documents)} documents without a single term")
    if backend == "bm25s":
        return Bm25sScorer(documents, parameters, dtype)
    return RankBm25Scorer(documents, parameters)


def check_belongs(content: Content, dataset: Any, what: str = "the index") -> None:
    """Raises InputError unless the content was built from this dataset, or from these strings."""
    origin = content.origin
    if origin.cache_key and origin.cache_key == getattr(dataset, "_fingerprint", None):
        return
    size = len(dataset) if hasattr(dataset, "__len__") else None
    if size is None or size == origin.size:
        source = Source.of_texts(dataset)
        if origin.columns is not None:
            source = Source.of_dataset(dataset, origin.columns, origin.filters)
        fingerprint = Fingerprint()
        for block in blocks(source.rows):
            fingerprint.add(block)
        size = fingerprint.size
        if fingerprint.hexdigest() == origin.digest:
            return
    columns = "" if origin.columns is None else f" in {', '.join((*origin.columns, *origin.filters))}"
    others = f"{size} documents, not {origin.size}" if size != origin.size else f"{size} documents, others{columns}"
    raise InputError(f"{what} does not belong to this dataset, which has {others}: build it again")
