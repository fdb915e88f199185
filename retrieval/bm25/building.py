"""Making, saving and loading what is in an index, and whether it belongs to a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.retrieval.bm25 import storage
from qabench.retrieval.bm25.backends import BACKENDS, Bm25sScorer, InvertedScorer, RankBm25Scorer, Scorer
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.inverted import Counter
from qabench.retrieval.bm25.postings import Postings
from qabench.retrieval.bm25.reading import Filters, Fingerprint, Source, blocks
from qabench.retrieval.bm25.tokenizers import Tokenizer, from_spec, name_of, tokenize
from qabench.retrieval.bm25.vocabulary import StoredVocabulary

DTYPES = ("float64", "float32")
POSTINGS = frozenset({"documents", "weights"})  # the arrays that grow with the texts


@dataclass(frozen=True)
class Origin:
    """What an index was made of.

    Attributes:
        size: the number of documents.
        digest: the fingerprint of texts and filter values.
        columns: the dataset's text columns; None for texts of no dataset.
        filters: the columns to filter by.
        cache_key: the name by which ``datasets`` knows the dataset.
    """

    size: int
    digest: str
    columns: list[str] | None
    filters: tuple[str, ...]
    cache_key: str | None


@dataclass(frozen=True)
class Content:
    """What is in an index."""

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
    """Indexes the documents of a source. Arguments and errors are ``BM25Index``'s."""
    if backend not in BACKENDS:
        raise InputError(f"unknown backend {backend!r}; allowed: {', '.join(BACKENDS)}")
    if dtype not in DTYPES:
        raise InputError(f"unknown dtype {dtype!r}; allowed: {', '.join(DTYPES)}")
    fingerprint = Fingerprint()
    counter = Counter(tokenizer)
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


def save(content: Content, path: Path) -> None:
    """Writes the content to a file; see ``BM25Index.save``."""
    if not isinstance(content.scorer, InvertedScorer):
        raise InputError("an index of another backend than 'qabench' cannot be saved")
    name = name_of(content.tokenizer)
    if "<" in name:
        raise InputError(
            f"the tokenizer {name} has no name by which it could be known again: use a function of a module, or an "
            "object with a name"
        )
    postings = content.scorer.postings
    vocabulary = content.scorer.vocabulary
    text, starts, numbers = StoredVocabulary.arrays(vocabulary.items())
    arrays = {
        "starts": postings.starts,
        "base": postings.base,
        "highest": postings.highest,
        "vocabulary_text": text,
        "vocabulary_starts": starts,
        "vocabulary_numbers": numbers,
        **{f"filter_{number}": content.filters.codes[name] for number, name in enumerate(content.origin.filters)},
        "documents": postings.documents,
        "weights": postings.weights,
    }
    header = {
        "parameters": content.parameters.as_dict(),
        "tokenizer": name,
        "tokenizer_spec": getattr(content.tokenizer, "spec", None),
        "filters": content.filters.values,
        "origin": vars(content.origin),
    }
    storage.write(path, header, arrays)


def load(path: Path, dataset: Any, tokenizer: Tokenizer | None, memory_map: bool, verify: bool) -> Content:
    """The content of a file; see ``BM25Index.load``."""
    header, arrays = storage.read(path, POSTINGS, memory_map, verify)
    origin = Origin(**header["origin"] | {"filters": tuple(header["origin"]["filters"])})
    codes = {name: arrays[f"filter_{number}"] for number, name in enumerate(origin.filters)}
    vocabulary = StoredVocabulary(*(arrays[f"vocabulary_{part}"] for part in ("text", "starts", "numbers")))
    parts = {name: arrays[name] for name in ("starts", "documents", "weights", "base", "highest")}
    content = Content(
        Parameters(**header["parameters"]),
        _tokenizer(path, header, tokenizer),
        InvertedScorer(Postings(**parts, size=origin.size), vocabulary),
        Filters(header["filters"], codes),
        origin,
    )
    if dataset is not None:
        check_belongs(content, dataset, f"the index {path}")
    return content


def _tokenizer(path: Path, header: dict[str, Any], given: Tokenizer | None) -> Tokenizer:
    name, spec = header["tokenizer"], header["tokenizer_spec"]
    if given is None and spec is None:
        raise InputError(f"the index {path} was made with the tokenizer {name}: give it as tokenizer=")
    tokenizer = from_spec(spec) if given is None else given
    if name_of(tokenizer) != name:
        raise InputError(
            f"the index {path} was made with the tokenizer {name}, and here it is {name_of(tokenizer)}: "
            "its terms may be others. Give that tokenizer, or build the index again"
        )
    return tokenizer


def check_belongs(content: Content, dataset: Any, what: str = "the index") -> None:
    """Raises InputError unless the content was made of this dataset, or of these texts."""
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
