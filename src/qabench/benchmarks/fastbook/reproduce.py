"""Published numbers of fastbook-benchmark, recomputed from public data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from qabench.benchmarks.fastbook.retrieval import parse_method
from qabench.benchmarks.fastbook.study import load_study, run
from qabench.benchmarks.published import published
from qabench.benchmarks.reproduction import Check, Reproduction, data_checks
from qabench.errors import QabenchError
from qabench.loading_scripts.fastbook.stats import tables

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
        try:
            if model and not _is_local(model):
                raise QabenchError(f"needs the model {model}: hf download {model}")
            scores = run(
                study, parse_method(method, **({f"{method}_model": model} if model else {})), k=10
            ).scores
        except QabenchError as error:
            checks.extend(_checks(system, {}, f"not computed: {error}"))
        else:
            checks.extend(
                _checks(system, {"mrr@10": scores.mrr(10), "recall@10": scores.recall(10)}, "")
            )
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
