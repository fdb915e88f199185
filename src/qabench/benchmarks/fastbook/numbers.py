"""Numbers about fastbook-benchmark's data, and published scores that are computed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qabench.benchmarks import benchmark
from qabench.benchmarks.fastbook.answer_components import answer_component_scores
from qabench.benchmarks.fastbook.retrieval import chapter_chunks, cut_as_source, queries, rank
from qabench.benchmarks.numbers import Numbers
from qabench.benchmarks.reproduction import Check, Reproduction
from qabench.data.rows import Row
from qabench.errors import QabenchError
from qabench.loading_scripts.published import shipped_scores

# The number of chunks of 500 tokens in the source's experiments.
CHUNKS = 271
# Maps each published system to a method of `fastbook retrieve` and the model that the method needs.
SYSTEMS: dict[str, tuple[str, str | None]] = {
    "full-text search (SQLite FTS5)": ("fts", None),
    "single vector (BAAI/bge-small-en-v1.5)": ("dense", "BAAI/bge-small-en-v1.5"),
    "ColBERT (colbert-ir/colbertv2.0)": ("colbert", "colbert-ir/colbertv2.0"),
    "ColBERT (answerdotai/answerai-colbert-small-v1)": (
        "colbert",
        "answerdotai/answerai-colbert-small-v1",
    ),
}
# Differences up to this are expected: the author ran the models on a GPU, and the ColBERT models in
# RAGatouille, so chunks with nearly equal scores can be in another order.
TOLERANCE = 0.01
OTHER_SOFTWARE = (
    "the author used a GPU, and RAGatouille for ColBERT; qabench uses sentence-transformers"
)


class FastbookNumbers(Numbers):
    """Counts fastbook-benchmark's data by chapter, and computes published scores again."""

    counted_by = "chapter"

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``."""
        if "text" in row:
            return {"characters": len(row["text"])}
        if "answer_context" not in row:
            return {"rows": 1}
        counts = {
            "questions": 1,
            "answer components": 0,
            "answer components without context": 0,
            "explicit_context false": 0,
            "extraneous_answer true": 0,
        }
        for component in row["answer_context"]:
            counts["answer components"] += 1
            counts["answer components without context"] += not component["context"]
            counts["explicit_context false"] += not component["explicit_context"]
            counts["extraneous_answer true"] += component["extraneous_answer"]
        return counts

    def reproduce(self) -> Reproduction:
        """Compare the statistics of the data, and the scores of the published methods."""
        reproduction = super().reproduce()
        reproduction.checks.extend(score_checks())
        return reproduction


def score_checks() -> list[Check]:
    """Return the published scores, and those computed here if the model is on this machine."""
    published = shipped_scores("fastbook")
    checks = []
    for system, (method, model) in SYSTEMS.items():
        scores: dict[str, float] = {}
        reason = ""
        try:
            scores = _scores(method, model)
        except QabenchError as error:
            reason = f"not computed: {error}"
        for score in published:
            if score.system != system:
                continue
            value = scores.get(score.metric)
            explanation = reason
            if value is not None and model and abs(value - score.value) <= TOLERANCE:
                explanation = OTHER_SOFTWARE
            check = Check(f"{system}: {score.metric}", score.value, value, explanation, "score")
            if check.agrees:
                check = replace(check, explanation="")
            checks.append(check)
    return checks


def _scores(method: str, model: str | None) -> dict[str, float]:
    """Return the scores of a published method, on the source's chunks."""
    chunks = chapter_chunks("questions", cut_as_source)
    n_chunks = sum(map(len, chunks.values()))
    if n_chunks != CHUNKS:
        raise QabenchError(f"llama-index makes {n_chunks} chunks, and the source has {CHUNKS}")
    if model and not _is_local(model):
        raise QabenchError(f"needs the model {model}: hf download {model}")
    rows = [question.row for question in benchmark("fastbook").load("questions").rows]
    kind = "keywords" if method == "fts" else "question"
    asked = queries(rows, "questions", kind)
    hits_of_questions = rank(chunks, asked, method, 10, model)
    passages = []
    for (chapter, _), hits in zip(asked, hits_of_questions, strict=True):
        passages.append([chunks[chapter][position] for position in hits.positions])
    references = [row["answer_context"] for row in rows]
    scores = answer_component_scores(references, passages, 10)
    return {"mrr@10": scores.mean("mrr", 10), "recall@10": scores.mean("recall", 10)}


def _is_local(model: str) -> bool:
    """Tell whether a model is a folder or in the Hub's cache, so that nothing is downloaded."""
    from huggingface_hub import try_to_load_from_cache

    return Path(model).is_dir() or isinstance(try_to_load_from_cache(model, "config.json"), str)
