"""Searching a sharded index: every shard finds its best documents, and the best of these are the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from qabench.errors import InputError
from qabench.io.workers import map_parallel
from qabench.retrieval.bm25.arrays import Array, Floats, Positions
from qabench.retrieval.bm25.backends import InvertedScorer
from qabench.retrieval.bm25.corpus_dataset import PREFIX, CorpusDataset
from qabench.retrieval.bm25.corpus_file import CorpusFile
from qabench.retrieval.bm25.corpus_parts import PREFIX as PARTS
from qabench.retrieval.bm25.corpus_parts import CorpusParts
from qabench.retrieval.bm25.index import BM25Index, Hits, checked_k, checked_queries
from qabench.retrieval.bm25.plan import read_plan
from qabench.retrieval.bm25.postings import Postings
from qabench.retrieval.bm25.ranking import top
from qabench.retrieval.bm25.sharded_build import FORMAT, PLAN, TERMS, shard_path
from qabench.retrieval.bm25.storage import StoredArrays
from qabench.retrieval.bm25.stored import check_vocabulary
from qabench.retrieval.bm25.tokenizers import Tokenizer, tokenize

QUERIES_PER_PROCESS = 250  # of a collection of a hundred thousand documents


@dataclass(frozen=True, slots=True)
class QueryPostings(Postings):
    """The postings of a query's terms in one shard. A term is its number in the query.

    ``base`` has a value for each term, including terms that are not in the shard: every term of the collection adds to
    a document's score.
    """

    shard: Postings
    numbers: Sequence[int | None]

    @classmethod
    def of_shard(cls, shard: Postings, numbers: Sequence[int | None], base: Floats) -> QueryPostings:
        """The postings of terms, given by their numbers in the shard (None: not there) and their base."""
        highest = np.array([0.0 if number is None else shard.highest[number] for number in numbers])
        return cls(shard.starts, shard.documents, shard.weights, base, highest, shard.size, shard, numbers)

    def frequency(self, term: int) -> int:
        """The number of the shard's documents that contain ``term``."""
        number = self.numbers[term]
        return 0 if number is None else self.shard.frequency(number)

    def span(self, term: int) -> tuple[int, int]:
        """The start and the end of the term's postings in the shard."""
        number = self.numbers[term]
        return (0, 0) if number is None else self.shard.span(number)

    def spans(self, terms: Array) -> tuple[Array, Array]:
        """The starts and the ends of several terms' postings in the shard."""
        starts, ends = np.array([self.span(term) for term in terms.tolist()]).T
        return starts.copy(), ends.copy()

    def lookup(self, term: int, documents: Positions) -> Floats:
        """The addend of ``term`` to the score of each of ``documents``."""
        number = self.numbers[term]
        return np.full(len(documents), self.base[term]) if number is None else self.shard.lookup(number, documents)


def merged(found: Sequence[tuple[Array, Floats]], k: int) -> Hits:
    """The k best documents of those that the shards found; equal scores by ascending position."""
    positions, scores = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.lexsort((positions, -scores))[:k]
    return Hits(positions[order].tolist(), scores[order].tolist())


class ShardedIndex:
    """A BM25 index in a folder, written by ``qabench index build``; scores and ranking are those of a ``BM25Index``.

    Args:
        folder: the folder.
        tokenizer: needed if the index was built with a custom function.

    Raises:
        InputError: not a complete index, or damaged.
    """

    def __init__(self, folder: str | Path, tokenizer: Tokenizer | None = None) -> None:
        self.folder = Path(folder)
        plan = read_plan(self.folder / PLAN, FORMAT)
        if plan is None or not plan.get("complete"):
            unfinished = "an unfinished index; run the same `qabench index build` again"
            raise InputError(f"{self.folder} is {unfinished if plan else 'not an index of `qabench index build`'}")
        try:
            self.size, per_shard = int(plan["documents"]), int(plan["documents_per_shard"])
            self._source = (str(plan["source"]), str(plan["column"]), tuple(plan["stamp"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{self.folder / 'index.json'} is damaged ({error!r}); build the index again") from None
        self._stored = StoredArrays(self.folder / TERMS, memory_map=True)
        self._parts: CorpusParts | None = None
        self._idf = self._stored.array("idf", "<f8")
        self._vocabulary = check_vocabulary(self._stored, len(self._idf))
        self._starts = list(range(0, self.size, max(per_shard, 1)))
        paths = [shard_path(self.folder, shard) for shard in range(len(self._starts))]
        self._shards = [BM25Index.load(path, tokenizer=tokenizer) for path in paths]
        if sum(map(len, self._shards)) != self.size or any(len(shard) > per_shard for shard in self._shards):
            raise InputError(f"the shards of {self.folder} are from different builds; build the index again")
        self.tokenizer, self.parameters = self._shards[0].tokenizer, self._shards[0].parameters

    def __len__(self) -> int:
        """The number of documents."""
        return self.size

    def search(self, query: str, k: int = 10, workers: int = 1) -> Hits:
        """The k best documents; equal scores by ascending position. ``workers``: threads that search the shards."""
        (terms,) = tokenize(self.tokenizer, checked_queries([query]))
        return self._search(terms, checked_k(k), workers)

    def search_batch(self, queries: Iterable[str], k: int = 10, workers: int | None = None) -> list[Hits]:
        """``search`` for each query, in ``workers`` processes if there are many queries; None: one per processor."""
        k = checked_k(k)
        terms = tokenize(self.tokenizer, checked_queries(queries))
        least = QUERIES_PER_PROCESS * 100_000 // self.size
        return map_parallel(lambda query: self._search(query, k, 1), terms, workers, least)

    def scores(self, query: str) -> Floats:
        """The query's score for every document."""
        known, base = self._known(tokenize(self.tokenizer, checked_queries([query]))[0])
        found = [self._postings(shard, known, base) for shard in range(len(self._shards))]
        order = range(len(known))
        return np.concatenate([postings.scores(order) for postings in found])

    def knows(self, query: str) -> bool:
        """Whether a document contains a term of the query."""
        return bool(self._known(tokenize(self.tokenizer, checked_queries([query]))[0])[0])

    def info(self) -> dict[str, Any]:
        """Size, parameters and source, as JSON data."""
        names = [shard_path(self.folder, shard) for shard in range(len(self._shards))]
        return {
            "documents": self.size,
            "terms": len(self._idf),
            "shards": len(self._shards),
            "bytes": sum(path.stat().st_size for path in [*names, self.folder / TERMS]),
            "parameters": self.parameters.as_dict(),
            "source": self._source[0],
        }

    def verify(self) -> None:
        """Reads and checks all files. Raises InputError if one is damaged."""
        for shard in range(len(self._shards)):
            BM25Index.load(shard_path(self.folder, shard), tokenizer=self.tokenizer, verify=True)

    def texts(self, positions: Sequence[int]) -> list[str] | None:
        """The texts of documents, from the source; None if the source no longer exists or has changed."""
        corpus = self._corpus()
        if corpus is None:
            return None
        return [next(corpus.texts(position, position + 1)) for position in positions]

    def rows(self, positions: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Columns of documents, such as their titles, in an index whose documents are in its folder.

        Raises:
            InputError: the documents are not there, or have changed.
        """
        if self._parts is None:  # thousands of files: opened once
            corpus = self._corpus()
            if not isinstance(corpus, CorpusParts):
                raise InputError(f"{self.folder} does not contain the documents of its index; build the index again")
            self._parts = corpus
        return self._parts.rows(positions, columns)

    def _corpus(self) -> CorpusFile | CorpusDataset | CorpusParts | None:
        """The source, unless it has changed."""
        source, column, stamp = self._source
        try:
            corpus: CorpusDataset | CorpusParts
            if source.startswith(PARTS):
                corpus = CorpusParts.reopen(self.folder, source, column)
                return corpus if corpus.stamp == stamp else None
            if source.startswith(PREFIX):
                corpus = CorpusDataset.reopen(source, column)
                return corpus if corpus.stamp == stamp else None
            status = Path(source).stat()
        except (OSError, InputError):
            return None
        if (status.st_size, status.st_mtime_ns) != stamp:
            return None
        return CorpusFile(Path(source), column, self.size, self._stored.array("offsets", "<i8"), stamp)

    def _search(self, terms: Sequence[str], k: int, workers: int) -> Hits:
        known, base = self._known(terms)
        one = partial(self._top, known=known, base=base, k=k)
        if workers > 1:
            with ThreadPoolExecutor(workers) as threads:
                found = list(threads.map(one, range(len(self._shards))))
        else:
            found = list(map(one, range(len(self._shards))))
        return merged(found, k)

    def _known(self, terms: Sequence[str]) -> tuple[list[str], Floats]:
        """The terms that are in the collection, in the query's order, and the base of each; see ``Postings.base``."""
        numbers = {term: self._vocabulary.get(term) for term in terms}
        known = [term for term in terms if numbers[term] is not None]
        return known, self.parameters.base(self._idf[[cast(int, numbers[term]) for term in known]])

    def _top(self, shard: int, known: list[str], base: Floats, k: int) -> tuple[Array, Floats]:
        # A repeated term has one number, so that pruning counts how often the query has it.
        first = {term: number for number, term in reversed(list(enumerate(known)))}
        postings = self._postings(shard, known, base)
        positions, scores = top(postings, [first[term] for term in known], k)
        return positions + self._starts[shard], scores

    def _postings(self, shard: int, known: list[str], base: Floats) -> QueryPostings:
        scorer = cast(InvertedScorer, self._shards[shard].scorer)
        scorer.postings.check_source()
        return QueryPostings.of_shard(scorer.postings, [scorer.vocabulary.get(term) for term in known], base)
