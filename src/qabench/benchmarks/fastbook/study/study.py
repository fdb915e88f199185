"""The retrieval experiment: a config's questions, its chapters in chunks, and the results of a method on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from qabench.benchmarks.fastbook.answer_components import (
    REPAIRED,
    AnswerComponentScores,
    answer_component_scores,
    mean_of,
)
from qabench.benchmarks.fastbook.study import chunking
from qabench.benchmarks.fastbook.study.coverage import ceiling
from qabench.benchmarks.fastbook.study.methods import Memory, Method
from qabench.benchmarks.fastbook.study.queries import Query, make_queries
from qabench.benchmarks.fastbook.study.questions import load_questions
from qabench.benchmarks.fastbook.study.scores import retrieval_columns
from qabench.errors import InputError
from qabench.evaluation.signature import digest, signature
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.fastbook.parse import KEYWORD_COLUMNS, parse_chapter, parse_keywords
from qabench.loading_scripts.fastbook.read import read_csv, read_object
from qabench.retrieval.bm25.index import Hits
from qabench.stats import Difference, Interval, bootstrap_mean, paired_bootstrap

# The configs with the chapters and the keywords for a config of questions.
CONFIGS = {"questions": ("corpus", "keywords"), "sample": ("sample_corpus", "sample_keywords")}
CHUNKERS: dict[str, Callable[[str, int, int | None], list[str]]] = {
    "sentences": chunking.cut,
    "llama-index": chunking.cut_as_source,
}
ALL = "all"


@dataclass(frozen=True)
class Study:
    """Questions, the chunks of each chapter, keywords by question id, and the fields of a signature.

    Attributes:
        questions: rows of the dataset.
        corpus: chapter -> its chunks.
        keywords: question id -> the keyword query.
        about: the fields of a signature that depend on the study.
        memory: a cache of rankings that methods share; see ``Method.rank``.
    """

    questions: Sequence[Mapping[str, Any]]
    corpus: Mapping[int, Sequence[str]]
    keywords: Mapping[str, str]
    about: Mapping[str, Any]
    memory: Memory = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def references(self) -> list[Any]:
        """Each question's answer components."""
        return [row["answer_context"] for row in self.questions]

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """The positions of all questions, and of those of each chapter: {"all": [0, 1, ...], "1": [0, 1], ...}."""
        groups: dict[str, list[int]] = {ALL: list(range(len(self.questions)))}
        for i, row in enumerate(self.questions):
            groups.setdefault(str(row["chapter"]), []).append(i)
        return groups

    def ceilings(self, k: int) -> dict[str, dict[str, float]]:
        """The highest scores that any ranking can have, by group: {"all": {"mrr@10": 0.8, "recall@10": 0.9}, ...}."""
        best = [ceiling(row, self.corpus[row["chapter"]], k, REPAIRED) for row in self.questions]
        return {
            group: {
                name: mean_of([best[i][column] for i in of]) for column, name in enumerate((f"mrr@{k}", f"recall@{k}"))
            }
            for group, of in self.groups.items()
        }

    def queries(self, kind: str) -> list[Query]:
        """One query per question; see ``make_queries``."""
        return make_queries(self.questions, self.keywords, kind)


@dataclass(frozen=True)
class Outcome:
    """The chunks that a method retrieved for each question, and its scores at the cutoff k."""

    study: Study
    method: Method
    k: int
    hits: Sequence[Hits]
    scores: AnswerComponentScores
    signature: str = field(repr=False)

    @cached_property
    def columns(self) -> dict[str, list[float]]:
        """Each question's scores: {"mrr@10": [...], "recall@10": [...]}."""
        rows = retrieval_columns(self.scores)
        return {name: [row[name] for row in rows] for name in rows[0]}

    @cached_property
    def intervals(self) -> dict[str, dict[str, Interval]]:
        """A 95% bootstrap interval over questions by group: {"all": {"mrr@10": ..., ...}, "1": ...}."""
        return {
            group: {name: bootstrap_mean([values[i] for i in of]) for name, values in self.columns.items()}
            for group, of in self.study.groups.items()
        }

    def differences(self, other: Outcome) -> dict[str, Difference]:
        """The differences to another method on the same questions, by score."""
        return {name: paired_bootstrap(values, other.columns[name]) for name, values in self.columns.items()}

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON data."""
        rows = zip(self.study.questions, *self.columns.values(), strict=True)
        return {
            "method": self.method.name,
            "query": self.method.asks,
            "scores": {f"mrr@{self.k}": self.scores.mrr(self.k), f"recall@{self.k}": self.scores.recall(self.k)},
            "intervals": {
                group: {name: asdict(interval) for name, interval in by.items()} for group, by in self.intervals.items()
            },
            "per_question": [
                {"id": row["id"], **dict(zip(self.columns, values, strict=True))} for row, *values in rows
            ],
            "signature": self.signature,
        }


def load_study(
    config: str = "questions", chunk_size: int = 500, overlap: int | None = None, chunker: str = "sentences"
) -> Study:
    """A config's questions, and its chapters split into chunks.

    Args:
        config: "questions" or "sample".
        chunk_size: the maximum number of tokens of a chunk.
        overlap: the maximum number of tokens that a chunk repeats from the previous one; None for the source's choice.
        chunker: "sentences", or "llama-index", which the source uses.

    Raises:
        InputError: an unknown config or chunker, or invalid sizes.
        MissingExtra: llama-index is not installed.
        SourceError: the data is not available.
    """
    if chunker not in CHUNKERS:
        raise InputError(f"unknown chunker {chunker!r}; allowed: {', '.join(CHUNKERS)}")
    overlap = chunking.check_sizes(chunk_size, overlap)
    questions = load_questions(config)
    corpus_config, keywords_config = CONFIGS[config]
    chapters = [parse_chapter(read_object(path), path.name) for path in _files(corpus_config)]
    keywords = [parse_keywords(row) for path in _files(keywords_config) for row in read_csv(path, KEYWORD_COLUMNS)]
    corpus = {row["chapter"]: CHUNKERS[chunker](row["text"], chunk_size, overlap) for row in chapters}
    names = [*_names(corpus_config), *_names(keywords_config)]
    about = {
        "config": config,
        "data": questions.digest,
        "corpus": digest([file_digest("fastbook", name) for name in names]),
        "chunker": chunking.NAME if chunker == "sentences" else chunking.source_version(),
        "chunk_size": chunk_size,
        "overlap": overlap,
    }
    return Study(questions.rows, corpus, {row["id"]: row["keywords"] for row in keywords}, about)


def run(study: Study, method: Method, k: int = 10) -> Outcome:
    """Retrieves k chunks for each question from its own chapter, and scores them.

    Raises:
        InputError: k below 1.
        MissingExtra: a package of the method is not installed.
    """
    if k < 1:
        raise InputError(f"k is {k}; it must be at least 1")
    hits = method.rank(study.corpus, study.queries, k, study.memory)
    passages = [
        [study.corpus[row["chapter"]][position] for position in found.positions]
        for row, found in zip(study.questions, hits, strict=True)
    ]
    scores = answer_component_scores(study.references, passages, k)
    fields = {**study.about, "method": method.name, "query": method.asks, "model": method.model, **scores.signature()}
    return Outcome(study, method, k, hits, scores, signature("fastbook_retrieval", **fields))


def _names(config: str) -> list[str]:
    return [name for files in dataset_table("fastbook").config(config).splits.values() for name in files]


def _files(config: str) -> list[Any]:
    return [open_path("fastbook", name) for name in _names(config)]
