"""The published numbers of fastbook-benchmark, recomputed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qabench.benchmarks import benchmark
from qabench.benchmarks.fastbook.answer_components import answer_component_scores
from qabench.benchmarks.fastbook.retrieval import chapter_chunks, cut_as_source, queries, rank
from qabench.benchmarks.reproduction import Check, Reproduction
from qabench.errors import QabenchError
from qabench.loading_scripts.published import shipped_scores

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


def reproduce(reproduction: Reproduction) -> Reproduction:
    """Add the scores of the published methods whose model is here to the statistics of the data."""
    published = shipped_scores("fastbook")
    for system, (method, model) in SYSTEMS.items():
        scores: dict[str, float] = {}
        reason = ""
        try:
            scores = _scores(method, model)
        except QabenchError as error:
            reason = f"not computed: {error}"
        for score in published:
            if score.system == system:
                value = scores.get(score.metric)
                is_near = value is not None and model and abs(value - score.value) <= TOLERANCE
                why = OTHER_SOFTWARE if is_near else reason
                check = Check(f"{system}: {score.metric}", score.value, value, why, "score")
                checked = replace(check, explanation="") if check.agrees else check
                reproduction.checks.append(checked)
    return reproduction


def _scores(method: str, model: str | None) -> dict[str, float]:
    """Return the scores of a published method, on the source's chunks."""
    chunks = chapter_chunks("questions", cut_as_source)
    if (count := sum(map(len, chunks.values()))) != CHUNKS:
        raise QabenchError(f"llama-index makes {count} chunks, and the source has {CHUNKS}")
    if model and not _is_local(model):
        raise QabenchError(f"needs the model {model}: hf download {model}")
    rows = [question.row for question in benchmark("fastbook").load("questions").rows]
    asked = queries(rows, "questions", "keywords" if method == "fts" else "question")
    passages = [
        [chunks[chapter][position] for position in hits.positions]
        for (chapter, _), hits in zip(asked, rank(chunks, asked, method, 10, model), strict=True)
    ]
    scores = answer_component_scores([row["answer_context"] for row in rows], passages, 10)
    return {"mrr@10": scores.mean("mrr", 10), "recall@10": scores.mean("recall", 10)}


def _is_local(model: str) -> bool:
    """Return whether a model is a folder or in the Hub's cache, so that nothing is downloaded."""
    from huggingface_hub import try_to_load_from_cache

    return Path(model).is_dir() or isinstance(try_to_load_from_cache(model, "config.json"), str)
