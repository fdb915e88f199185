"""ExpertQA: expert questions, answers of six systems, and claim-level annotations."""

from __future__ import annotations

from qabench.benchmarks import Benchmark, Setting
from qabench.benchmarks.expertqa.metrics import METRICS

BENCHMARK = Benchmark(
    name="expertqa",
    title="ExpertQA",
    settings=(
        Setting("closed", "expertqa", "The question alone; citations from memory.", {"method": "closed"}),
        Setting("retrieve-read", "expertqa", "The question and retrieved passages.", {"method": "retrieve-read"}),
        Setting("post-hoc", "expertqa", "As closed; each claim gets its best passage.", {"method": "post-hoc"}),
    ),
    part="fields",
    metrics=METRICS,
    headline=("autoais_macro", "evidence"),
    families={
        "rouge": "ROUGE between answer and reference (lfqa configs)",
        "autoais": "AutoAIS of claims with labels, and agreement with human labels",
        "factuality": "agreement of fact scores with human labels",
    },
    default_families=("rouge", "autoais", "factuality"),
    groupings={"field": "field", "question_type": "type of question"},
    evaluate_with="qabench.benchmarks.expertqa.predictions:evaluate",
    declarations="qabench.benchmarks.expertqa.official:DECLARATIONS",
)
