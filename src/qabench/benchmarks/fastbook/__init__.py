"""fastbook-benchmark: retrieval questions over seven chapters of the fastai book."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qabench.benchmarks import Benchmark, Option, Setting
from qabench.benchmarks.needs import Need
from qabench.evaluation.metric import Metric


def _mean(values: Sequence[float]) -> float:
    from qabench.scoring.answer_components import mean_of

    return mean_of(values)


BENCHMARK = Benchmark(
    name="fastbook",
    title="fastbook-benchmark",
    settings=(Setting("rag", "fastbook_rag", "The question and the passages retrieved for it."),),
    part="chapters",
    metrics=(
        Metric(
            "mrr@k",
            "MRR@k",
            "1 / rank at which all components of the answer are retrieved; 0 if this rank is above k.",
            "retrieval",
            mean=_mean,
        ),
        Metric(
            "recall@k",
            "Recall@k",
            "Share of the answer's components retrieved in the top k.",
            "retrieval",
            mean=_mean,
        ),
        *(
            Metric(
                f"{kind}.fscore",
                f"{title} F",
                f"F-measure of {title} between the model's answer and the gold answer.",
                "rouge",
                official=False,
            )
            for kind, title in (("rouge1", "ROUGE-1"), ("rouge2", "ROUGE-2"), ("rougeL", "ROUGE-L"))
        ),
    ),
    headline=("recall@10", "recall"),
    families={
        "retrieval": "Answer Component MRR@k and Recall@k",
        "rouge": "ROUGE F-measures of the answers; not a score of the benchmark's authors",
    },
    default_families=("retrieval",),
    groupings={"chapter": "chapter"},
    evaluate_with="qabench.benchmarks.fastbook.predictions:evaluate",
    prediction_with="qabench.benchmarks.fastbook.prediction:prediction",
    declarations="qabench.benchmarks.fastbook.official:DECLARATIONS",
    reproduce_with="qabench.benchmarks.fastbook.reproduce:reproduce",
    needs=(
        Need("MRR@k and Recall@k"),
        Need("the questions", "qabench fetch fastbook", files=("fastbook-benchmark.json",)),
    ),
    options=(
        Option("k", "The cutoffs, separated by commas.", default="10"),
        Option(
            "corpus",
            'The texts of the documents of a TREC run: JSONL, one {"docno", "text"} per line.',
            Path,
            for_reading=True,
        ),
    ),
    prediction_fields=("passages", "answer"),
    read_with="qabench.benchmarks.fastbook.predictions:read",
    sections_with="qabench.benchmarks.fastbook.sections:sections",
    commands={"retrieve": "qabench.benchmarks.fastbook.commands:retrieve"},
)
