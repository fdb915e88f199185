"""The retrieval experiment: questions, chunks, the results of a method, files in TREC formats, published scores.

ir_measures, ranx and trec_eval also read these files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.benchmarks.fastbook.answer_components import (
    AnswerComponentScores,
    answer_component_scores,
)
from qabench.benchmarks.fastbook.retrieval import Method, cut_as_source, make_queries, parse_method
from qabench.benchmarks.published import published
from qabench.benchmarks.reproduction import Check, Reproduction, data_checks
from qabench.data.predictions import Predictions, parse_run, some
from qabench.data.rows import Json, Row, json_rows
from qabench.errors import InputError, QabenchError, unknown_name
from qabench.evaluation.signature import digest, signature
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.fastbook.chunks import CHUNKER, check_sizes, cut, doc_id
from qabench.loading_scripts.fastbook.parse import read_chapter, read_keywords
from qabench.loading_scripts.fastbook.stats import tables
from qabench.retrieval.bm25.index import Hits
from qabench.retrieval.documents import run_lines

# The configs with the chapters and the keywords for a config of questions.
CONFIGS = {"questions": ("corpus", "keywords"), "sample": ("sample_corpus", "sample_keywords")}
CHUNKERS: dict[str, Callable[[str, int, int | None], list[str]]] = {
    "sentences": cut,
    "llama-index": cut_as_source,
}


@dataclass(frozen=True)
class Study:
    """Questions, the chunks of each chapter, keywords by question id, and the fields of a signature.

    Attributes:
        questions: rows of the dataset.
        corpus: chapter -> its chunks.
        keywords: question id -> the keyword query.
        about: the fields of a signature that depend on the study.
    """

    questions: Sequence[Row]
    corpus: Mapping[int, Sequence[str]]
    keywords: Mapping[str, str]
    about: Mapping[str, Any]

    @cached_property
    def references(self) -> list[Any]:
        """Each question's answer components."""
        return [row["answer_context"] for row in self.questions]


@dataclass(frozen=True)
class Retrieval:
    """The chunks that a method retrieved for each question, and its scores at the cutoff k."""

    study: Study
    method: Method
    k: int
    hits: Sequence[Hits]
    scores: AnswerComponentScores
    signature: str = field(repr=False)

    @cached_property
    def predicted(self) -> dict[str, Json]:
        """Return the fields of each question's prediction: its passages with their ids and scores."""
        fields = {}
        for row, hits in zip(self.study.questions, self.hits, strict=True):
            chapter = row["chapter"]
            chunks = self.study.corpus[chapter]
            fields[row["id"]] = {
                "passages": [chunks[position] for position in hits.positions],
                "documents": [doc_id(chapter, position) for position in hits.positions],
                "scores": list(hits.scores),
            }
        return fields


def load_study(
    config: str = "questions",
    chunk_size: int = 500,
    overlap: int | None = None,
    chunker: str = "sentences",
) -> Study:
    """Return a config's questions, and its chapters split into chunks.

    See the task ``fastbook_rag``.

    Raises:
        InputError: an unknown config or chunker, or invalid sizes.
        MissingExtra: llama-index is not installed.
        SourceError: the data is not available.
    """
    if chunker not in CHUNKERS:
        raise unknown_name("unknown chunker", chunker, CHUNKERS)
    overlap = check_sizes(chunk_size, overlap)
    questions = benchmark("fastbook").load(config)
    configs = map(dataset_table("fastbook").config, CONFIGS[config])
    (notebooks,), (keyword_files,) = (config.splits.values() for config in configs)
    chapters = (read_chapter(open_path("fastbook", name)) for name in notebooks)
    corpus = {
        row["chapter"]: CHUNKERS[chunker](row["text"], chunk_size, overlap) for row in chapters
    }
    keywords = [row for name in keyword_files for row in read_keywords(open_path("fastbook", name))]
    about = {
        "config": config,
        "data": questions.data,
        "corpus": digest([file_digest("fastbook", name) for name in (*notebooks, *keyword_files)]),
        "chunker": CHUNKER
        if chunker == "sentences"
        else f"llama-index-core-{version('llama-index-core')}",
        "chunk_size": chunk_size,
        "overlap": overlap,
    }
    return Study(
        [question.row for question in questions.rows],
        corpus,
        {row["id"]: row["keywords"] for row in keywords},
        about,
    )


def run(study: Study, method: Method, k: int = 10) -> Retrieval:
    """Retrieve k chunks for each question from its own chapter, and score them.

    Raises:
        InputError: k below 1.
        MissingExtra: a package of the method is not installed.
    """
    if k < 1:
        raise InputError(f"k is {k}; it must be at least 1")
    hits = method.rank(study.corpus, make_queries(study.questions, study.keywords, method.query), k)
    passages = [
        [study.corpus[row["chapter"]][position] for position in ranking.positions]
        for row, ranking in zip(study.questions, hits, strict=True)
    ]
    scores = answer_component_scores(study.references, passages, k)
    fields = {
        **study.about,
        "method": method.name,
        "query": method.query,
        "model": method.model,
        **scores.signature(),
    }
    return Retrieval(study, method, k, hits, scores, signature("fastbook_retrieval", **fields))


def run_text(questions: Sequence[Row], hits: Sequence[Hits], tag: str) -> str:
    """Return a TREC run (see ``run_lines``)."""
    return "".join(
        run_lines(
            row["id"],
            [(doc_id(row["chapter"], position), score) for position, score in ranking],
            tag,
        )
        for row, ranking in zip(questions, hits, strict=True)
    )


def parse_corpus(data: bytes, name: str) -> dict[str, str]:
    """Return the texts of a corpus by document id: JSONL with "docno", "doc_id" or "id", and "text".

    Raises:
        InputError: a line is not such an object, or an id is repeated. The message names the line.
    """
    texts: dict[str, str] = {}
    for row in json_rows(data.split(b"\n"), name):
        name_of_id = next((key for key in ("docno", "doc_id") if key in row.fields), "id")
        docno = row.get(name_of_id, str)
        if docno in texts:
            raise InputError(f"{row.where}: the document {docno!r} is repeated")
        texts[docno] = row.get("text", str)
    return texts


def parse_run_with_texts(data: bytes, name: str, texts: Mapping[str, str]) -> Predictions:
    """Return the rankings of a run as predictions with the texts of the documents (see ``parse_run``).

    Raises InputError also for documents that are not in the corpus.
    """
    run = parse_run(data, name, "documents")
    if missing := sorted(
        {docno for row in run.rows for docno in row.fields["documents"] if docno not in texts}
    ):
        raise InputError(
            f"{len(missing)} documents of {name} are not in the corpus: {some(missing)}; give the corpus that was "
            "searched"
        )
    rows = [
        replace(
            row,
            fields={**row.fields, "passages": [texts[docno] for docno in row.fields["documents"]]},
        )
        for row in run.rows
    ]
    return replace(run, rows=tuple(rows))


CHUNKS = 271  # in the source's experiments, at 500 tokens
# Published system -> method of `fastbook retrieve`, and the model that it needs.
SYSTEMS: dict[str, tuple[str, str | None]] = {
    "full-text search (SQLite FTS5)": ("fts", None),
    "single vector (BAAI/bge-small-en-v1.5)": ("dense", "BAAI/bge-small-en-v1.5"),
    "ColBERT (colbert-ir/colbertv2.0)": ("colbert", "colbert-ir/colbertv2.0"),
    "ColBERT (answerdotai/answerai-colbert-small-v1)": (
        "colbert",
        "answerdotai/answerai-colbert-small-v1",
    ),
}
# The author ran the models on a GPU, the ColBERT models in RAGatouille, where near ties can have
# another order.
TOLERANCE = 0.01
OTHER_SOFTWARE = "the author used a GPU and, for ColBERT, RAGatouille; here sentence-transformers"


def reproduce() -> Reproduction:
    """Compare the statistics of the data, and recompute the scores of the published methods whose model is here."""
    reproduction = data_checks("fastbook", tables)
    checks = reproduction.checks
    try:
        study = load_study(chunker="llama-index")
    except QabenchError as error:
        checks.extend(
            check for system in SYSTEMS for check in _checks(system, {}, f"not computed: {error}")
        )
        return reproduction
    checks.append(
        Check("chunks of 500 tokens by llama-index", CHUNKS, sum(map(len, study.corpus.values())))
    )
    for system, (method, model) in SYSTEMS.items():
        values, reason = {}, ""
        try:
            if model and not _is_local(model):
                raise QabenchError(f"needs the model {model}: hf download {model}")
            scores = run(study, parse_method(method, None, model or "", model or "")).scores
            values = {"mrr@10": scores.mrr(10), "recall@10": scores.recall(10)}
        except QabenchError as error:
            reason = f"not computed: {error}"
        checks.extend(_checks(system, values, reason))
    return reproduction


def _is_local(model: str) -> bool:
    """Return whether a model is a folder or in the Hub's cache, so that nothing is downloaded."""
    from huggingface_hub import try_to_load_from_cache

    return Path(model).is_dir() or isinstance(try_to_load_from_cache(model, "config.json"), str)


def _checks(system: str, scores: Mapping[str, float], reason: str) -> Iterator[Check]:
    """Compare the published scores of a system with the computed ones, if there are any."""
    for score in published("fastbook"):
        if score.system != system:
            continue
        value = scores.get(score.metric)
        if value is not None and SYSTEMS[system][1] and abs(value - score.value) <= TOLERANCE:
            reason = OTHER_SOFTWARE
        check = Check(f"{system}: {score.metric}", score.value, value, reason, "score")
        yield replace(check, explanation="") if check.agrees else check
