"""FanOutQA: multi-hop, multi-document questions over Wikipedia."""

from __future__ import annotations

from qabench.benchmarks import Benchmark, Setting
from qabench.evaluation.metric import Metric

_ROUGE = tuple(
    Metric(f"{kind}.fscore", f"{title} F", f"F-measure of {title} between answer and reference.", "rouge")
    for kind, title in (("rouge1", "ROUGE-1"), ("rouge2", "ROUGE-2"), ("rougeL", "ROUGE-L"))
)
BENCHMARK = Benchmark(
    name="fanoutqa",
    title="FanOutQA",
    settings=(
        Setting("closed-book", "fanoutqa_closed_book", "The question alone."),
        Setting("open-book", "fanoutqa_open_book", "The model may search Wikipedia."),
        Setting("evidence-provided", "fanoutqa_evidence_provided", "The best passages of the evidence pages."),
    ),
    part="category",
    metrics=(
        Metric(
            "acc.loose",
            "Loose accuracy",
            "Mean share of the reference's strings found in the answer.",
            "acc",
            graded=True,
        ),
        Metric(
            "acc.strict",
            "Strict accuracy",
            "Share of answers in which every string of the reference is found.",
            "acc",
            graded=True,
        ),
        *_ROUGE,
        Metric("bleurt", "BLEURT", "Learned similarity of answer and reference.", "bleurt"),
        Metric(
            "gpt", "LLM judge", "Share of answers that a model judges to agree with the reference.", "gpt", graded=True
        ),
    ),
    headline=("acc.loose",),
    families={
        "acc": "loose and strict accuracy",
        "rouge": "ROUGE-1, ROUGE-2 and ROUGE-L",
        "bleurt": "BLEURT",
        "judge": "the verdicts of an LLM judge",
    },
    default_families=("acc", "rouge"),
    groupings={"category": "category", "type": "type of answer", "evidence": "number of evidence documents"},
    evaluate_with="qabench.benchmarks.fanoutqa.predictions:evaluate",
    declarations="qabench.benchmarks.fanoutqa.official:DECLARATIONS",
    reproduce_with="qabench.benchmarks.fanoutqa.reproduce:reproduce",
    published_with="qabench.loading_scripts.fanoutqa.leaderboard:published_scores",
)
