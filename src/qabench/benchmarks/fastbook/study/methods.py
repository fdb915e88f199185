"""The retrieval methods by name: each ranks the chunks of each query's own chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qabench.benchmarks.fastbook.study.fts import rank_fts
from qabench.benchmarks.fastbook.study.neural import COLBERT_MODEL, DENSE_MODEL, rank_colbert, rank_dense
from qabench.benchmarks.fastbook.study.queries import Query
from qabench.errors import InputError
from qabench.retrieval.bm25.index import BM25Index, Hits

SINGLE = ("bm25", "fts", "dense", "colbert")
HYBRID = "hybrid"
DEFAULT_HYBRID = ("bm25", "fts")
DEFAULT_QUERY = {"fts": "keywords"}  # as in the source; all other methods get the question
FUSION_K = 60
FUSION_DEPTH = 100

Corpus = Mapping[int, Sequence[str]]
Asked = Callable[[str], Sequence[Query]]
"""From the kind of query, "question" or "keywords", to the queries."""
Memory = dict[tuple[str, str, str | None, int], list[Hits]]


@dataclass(frozen=True, slots=True)
class Method:
    """A method by its name on the command line: "bm25", "fts", "dense", "colbert", or "hybrid:bm25,dense".

    Attributes:
        parts: the single method, or the two that a hybrid fuses.
        query: the kind of query for all parts; None for the default of each part.
        models: the models of "dense" and "colbert".
    """

    name: str
    parts: tuple[str, ...]
    query: str | None
    models: Mapping[str, str]

    @property
    def asks(self) -> str:
        """The kind of query, for signatures: "keywords", or "question+keywords" if the parts differ."""
        return "+".join(dict.fromkeys(self._kind(part) for part in self.parts))

    @property
    def model(self) -> str | None:
        """The models in use, for signatures (a folder by its name), or None."""
        used = [self.models[part] for part in self.parts if part in self.models]
        return "+".join(Path(model).name if Path(model).is_dir() else model for model in used) or None

    def rank(self, corpus: Corpus, asked: Asked, k: int, memory: Memory) -> list[Hits]:
        """The k best chunks of each question.

        Args:
            corpus: the chunks of each chapter.
            asked: returns the queries of a kind.
            k: the number of chunks to return.
            memory: a cache of rankings of this corpus, so that a hybrid does not encode it again; initially {}.

        Raises:
            MissingExtra: a package of the method is not installed.
        """
        depth = max(k, FUSION_DEPTH)
        rankings = [self._rank(part, corpus, asked, depth, memory) for part in self.parts]
        if len(rankings) == 1:
            return [Hits(hits.positions[:k], hits.scores[:k]) for hits in rankings[0]]
        return [fuse(of_question, k) for of_question in zip(*rankings, strict=True)]

    def _kind(self, part: str) -> str:
        return self.query or DEFAULT_QUERY.get(part, "question")

    def _rank(self, part: str, corpus: Corpus, asked: Asked, depth: int, memory: Memory) -> list[Hits]:
        key = (part, self._kind(part), self.models.get(part), depth)
        if key not in memory:
            queries = asked(self._kind(part))
            if part == "bm25":
                memory[key] = rank_bm25(corpus, queries, depth)
            elif part == "fts":
                memory[key] = rank_fts(corpus, queries, depth)
            else:
                rank = rank_dense if part == "dense" else rank_colbert
                memory[key] = rank(corpus, queries, depth, self.models[part])
        return memory[key]


def parse_method(
    name: str, query: str | None = None, dense_model: str = DENSE_MODEL, colbert_model: str = COLBERT_MODEL
) -> Method:
    """A method by its name on the command line.

    Raises:
        InputError: an unknown name, or a hybrid that does not have two different methods.
    """
    models = {"dense": dense_model, "colbert": colbert_model}
    kind, _, rest = name.partition(":")
    if kind != HYBRID:
        if name not in SINGLE:
            raise InputError(f"unknown method {name!r}; allowed: {', '.join(SINGLE)}, {HYBRID}, {HYBRID}:A,B")
        return Method(name, (name,), query, models)
    parts = tuple(rest.split(",")) if rest else DEFAULT_HYBRID
    if len(parts) != 2 or len(set(parts)) != 2 or not set(parts) <= set(SINGLE):
        raise InputError(
            f"{name!r} is not a hybrid; allowed: {HYBRID}:A,B with two different methods of {', '.join(SINGLE)}"
        )
    return Method(f"{HYBRID}:{','.join(parts)}", parts, query, models)


def rank_bm25(corpus: Corpus, queries: Sequence[Query], k: int) -> list[Hits]:
    """The best chunks of each query's chapter by BM25+, one index per chapter; see ``qabench.retrieval.BM25Index``."""
    indexes = {chapter: BM25Index(chunks) for chapter, chunks in corpus.items()}
    return [indexes[query.chapter].search(query.text, k) for query in queries]


def fuse(rankings: Sequence[Hits], k: int) -> Hits:
    """Reciprocal rank fusion: a chunk's score is the sum over rankings of 1 / (60 + its rank); ties by position.

    Source: Cormack, Clarke and Buettcher, Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning
    Methods, SIGIR 2009.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, position in enumerate(ranking.positions, 1):
            scores[position] = scores.get(position, 0.0) + 1 / (FUSION_K + rank)
    best = sorted(scores, key=lambda position: (-scores[position], position))[:k]
    return Hits(best, [scores[position] for position in best])
