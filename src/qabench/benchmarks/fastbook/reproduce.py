"""Published numbers of fastbook-benchmark that can be computed from public data."""

from __future__ import annotations

from qabench.errors import MissingExtra
from qabench.published import published
from qabench.reproduction import Check, Reproduction, data_checks

CHUNKS = 271  # the number in the source's experiments, at 500 tokens
NEURAL = (
    "The per-question scores that the author reports for neural retrieval are not computed: they need model weights."
)


def reproduce() -> Reproduction:
    """The statistics of the data, and full-text search with the source's chunks and keyword queries."""
    from qabench.benchmarks.fastbook.study.methods import parse_method
    from qabench.benchmarks.fastbook.study.study import load_study, run

    found = data_checks("fastbook")
    try:
        study = load_study(chunker="llama-index")
    except MissingExtra as error:
        found.notes.append(f"The scores of full-text search are not computed: {error}.")
        return found
    scores = run(study, parse_method("fts"), k=10).scores
    values = {"mrr@10": scores.mrr(10), "recall@10": scores.recall(10)}
    found.checks.append(Check("chunks of 500 tokens by llama-index", CHUNKS, sum(map(len, study.corpus.values()))))
    found.checks.extend(
        Check(f"{one.system}: {one.metric}", one.value, values[one.metric]) for one in published("fastbook")
    )
    found.notes.append(NEURAL)
    return found
