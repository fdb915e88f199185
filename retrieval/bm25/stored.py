"""Saving an index to a file, and opening it without trusting the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.arrays import Array, Floats, Positions
from qabench.retrieval.bm25.backends import InvertedScorer
from qabench.retrieval.bm25.building import Content, Origin, check_belongs
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.inverted import MOST_DOCUMENTS
from qabench.retrieval.bm25.postings import Postings, places_of
from qabench.retrieval.bm25.reading import Filters
from qabench.retrieval.bm25.storage import BLOCK, Blocks, StoredArrays, write
from qabench.retrieval.bm25.tokenizers import Tokenizer, from_spec, name_of
from qabench.retrieval.bm25.vocabulary import StoredVocabulary

POSTINGS = ("documents", "weights")  # the arrays that grow with the collection


BLOCKS_PER_LOOKUP = 4  # above, it is faster to check single blocks of a term's postings
PARTIAL_CHECKS = 3  # of a term's postings; the next search checks all of them, so that lookups become faster


@dataclass(frozen=True, slots=True)
class StoredPostings(Postings):
    """Postings in a file. The blocks that a search reads are checked when they are first read."""

    stored: StoredArrays
    document_blocks: Blocks
    weight_blocks: Blocks
    checked: set[int] = field(default_factory=set)
    partly_checked: Counter[int] = field(default_factory=Counter)

    def check_source(self) -> None:
        """Raises InputError if the file was truncated after it was opened."""
        self.stored.check_size()

    def span(self, term: int) -> tuple[int, int]:
        """The start and the end of the term's postings. Raises InputError if they have changed."""
        start, end = int(self.starts[term]), int(self.starts[term + 1])
        if term not in self.checked:
            self._check(start, end)
            self.checked.add(term)
        return start, end

    def spans(self, terms: Array) -> tuple[Array, Array]:
        """The starts and the ends of several terms' postings. Raises InputError if they have changed."""
        for term in terms.tolist():
            if term not in self.checked:
                self.span(term)
        return Postings.spans(self, terms)

    def lookup(self, term: int, documents: Positions) -> Floats:
        """See ``Postings.lookup``. For a long list of postings, only the blocks that are read are checked."""
        start, end = int(self.starts[term]), int(self.starts[term + 1])
        long = (end - start) * self.documents.itemsize > BLOCKS_PER_LOOKUP * len(documents) * BLOCK
        if term in self.checked or not long or self.partly_checked[term] == PARTIAL_CHECKS:
            return Postings.lookup(self, term, documents)
        self.partly_checked[term] += 1
        having = self.documents[start:end]
        places = places_of(documents, having)
        self._check_places(start, having, documents, places)
        return self._found(term, documents, having, self.weights[start:end], places)

    def check_all(self) -> None:
        """Checks the postings of all terms. Raises InputError if any have changed."""
        self._check(0, len(self.documents))

    def _check_places(self, start: int, having: Positions, documents: Positions, places: Array) -> None:
        """Checks that ``places`` are correct, even if the binary search read damaged blocks."""
        last = len(having) - 1
        before, after = np.maximum(places - 1, 0), np.minimum(places, last)
        for place in (start + np.concatenate((before, after))).tolist():
            self.document_blocks.check(place, place + 1)
        for place in (start + after[having[after] == documents]).tolist():
            self.weight_blocks.check(place, place + 1)
        between = ((places == 0) | (having[before] < documents)) & ((places > last) | (having[after] >= documents))
        if not between.all():
            raise self.stored.damaged("positions are not in ascending order")

    def _check(self, start: int, end: int) -> None:
        self.document_blocks.check(start, end)
        self.weight_blocks.check(start, end)
        # As unsigned numbers, positions below 0 are too large as well.
        if end > start and self.documents[start:end].view(np.uint32).max() >= self.size:
            raise self.stored.damaged("a position beyond the last document")


def save(content: Content, path: Path) -> None:
    """Writes the content to a file; see ``BM25Index.save``."""
    if not isinstance(content.scorer, InvertedScorer):
        raise InputError("only an index of the backend 'qabench' can be saved")
    name = name_of(content.tokenizer)
    if "<" in name:
        raise InputError(
            f"the tokenizer {name} cannot be saved, because it does not have a name: use a function of a module, or an "
            "object with a name"
        )
    postings = content.scorer.postings
    text, starts, numbers = StoredVocabulary.arrays(content.scorer.vocabulary.items())
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
    write(path, header, arrays, POSTINGS)


def load(path: Path, dataset: Any, tokenizer: Tokenizer | None, memory_map: bool, verify: bool) -> Content:
    """The content of a file; see ``BM25Index.load``."""
    stored = StoredArrays(path, memory_map)
    try:
        origin = _origin(stored.header["origin"])
        parameters = Parameters.of(**stored.header["parameters"])
        filters = _filters(stored, origin)
        name, spec = stored.header["tokenizer"], stored.header["tokenizer_spec"]
        tokenizer = _tokenizer(path, name, spec, tokenizer)
    except (KeyError, TypeError, AttributeError) as error:
        raise stored.damaged(f"a field of its header is missing or has another type: {error!r:.100}") from None
    postings = _postings(stored, origin.size)
    if verify or not memory_map:
        postings.check_all()
    scorer = InvertedScorer(postings, check_vocabulary(stored, len(postings.base)))
    content = Content(parameters, tokenizer, scorer, filters, origin)
    if dataset is not None:
        check_belongs(content, dataset, f"the index {path}")
    return content


def _postings(stored: StoredArrays, size: int) -> StoredPostings:
    starts, base, highest = stored.array("starts", "<i8"), stored.array("base", "<f8"), stored.array("highest", "<f8")
    documents, weights = stored.array("documents", "<i4"), stored.array("weights", "<f8", "<f4")
    if not len(starts) == len(base) + 1 == len(highest) + 1 > 1 or len(documents) != len(weights):
        raise stored.damaged("its arrays are of different lengths")
    _check_starts(stored, starts, len(documents))
    document_blocks, weight_blocks = (stored.blocks(name) for name in POSTINGS)
    return StoredPostings(starts, documents, weights, base, highest, size, stored, document_blocks, weight_blocks)


def check_vocabulary(stored: StoredArrays, terms: int) -> StoredVocabulary:
    """The vocabulary of a file. Raises InputError unless it has ``terms`` terms with numbers below that."""
    text, starts = stored.array("vocabulary_text", "|u1"), stored.array("vocabulary_starts", "<i8")
    numbers = stored.array("vocabulary_numbers", "<i4")
    if len(starts) != terms + 1 or len(numbers) != terms or numbers.view(np.uint32).max() >= terms:
        raise stored.damaged("its vocabulary does not match its postings")
    _check_starts(stored, starts, len(text))
    return StoredVocabulary(text, starts, numbers)


def _check_starts(stored: StoredArrays, starts: Array, end: int) -> None:
    if starts[0] != 0 or starts[-1] != end or (np.diff(starts) < 0).any():
        raise stored.damaged("its parts are not consecutive")


def _origin(fields: Mapping[str, Any]) -> Origin:
    origin = Origin(**{**fields, "filters": tuple(fields["filters"])})
    _expect(type(origin.size) is int and 0 < origin.size <= MOST_DOCUMENTS, "size")
    _expect(isinstance(origin.digest, str), "digest")
    _expect(origin.columns is None or _are_strings(origin.columns), "columns")
    _expect(_are_strings(list(origin.filters)), "filters")
    _expect(origin.cache_key is None or isinstance(origin.cache_key, str), "cache_key")
    return origin


def _filters(stored: StoredArrays, origin: Origin) -> Filters:
    values = stored.header["filters"]
    codes = {name: stored.array(f"filter_{number}", "<i4") for number, name in enumerate(origin.filters)}
    _expect(isinstance(values, dict) and list(values) == list(codes), "filters")
    for name, column in codes.items():
        _expect(_are_strings(values[name]), "filters")
        if len(column) != origin.size or column.view(np.uint32).max() >= len(values[name]):
            raise stored.damaged(f"the filter {name!r} does not match the documents")
    return Filters(values, codes)


def _tokenizer(path: Path, name: Any, spec: Any, given: Tokenizer | None) -> Tokenizer:
    _expect(isinstance(name, str), "tokenizer")
    if given is None and spec is None:
        raise InputError(f"the index {path} was built with the tokenizer {name}: pass it as tokenizer=")
    tokenizer = from_spec(spec) if given is None else given
    if name_of(tokenizer) != name:
        raise InputError(
            f"the index {path} was built with the tokenizer {name}, but tokenizer= is {name_of(tokenizer)}, which can "
            "return other terms: pass the original tokenizer, or build the index again"
        )
    return tokenizer


def _are_strings(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _expect(fits: bool, field_name: str) -> None:
    if not fits:
        raise TypeError(field_name)
