"""ExpertQA: expert questions, answers of six systems, and claim-level annotations."""

from __future__ import annotations

from qabench.benchmarks import Benchmark, Option, Setting
from qabench.benchmarks.expertqa.metrics import FAMILIES, METRICS

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
    headline=("autoais_macro", "autoais_agreement.accuracy", "rougeL", "fact_score", "evidence"),
    families={
        "rouge": "ROUGE between answer and reference answer.",
        "autoais": "AutoAIS: the share of claims that their evidence entails, from labels of claims.",
        "autoais_agreement": "Agreement of labels of claims with the experts, on the annotated claims.",
        "fact_score": "Mean fact score of claims.",
        "fact_score_agreement": "Agreement of fact scores with the experts, on the annotated claims.",
    },
    default_families=FAMILIES,
    groupings={"field": "field", "question type": "type of question", "system": "system"},
    evaluate_with="qabench.benchmarks.expertqa.predictions:evaluate",
    prediction_with="qabench.benchmarks.expertqa.prediction:prediction",
    declarations="qabench.benchmarks.expertqa.official:DECLARATIONS",
    reproduce_with="qabench.benchmarks.expertqa.reproduce:reproduce",
    options=(
        Option(
            "split", "A split of the config; by default test, if it has one.", choices=("train", "validation", "test")
        ),
        Option(
            "unlabeled",
            "A claim that counts but has no label is N, or left out.",
            default="N",
            choices=("N", "exclude"),
        ),
    ),
    prediction_fields=("answer", "claims"),
    commands={
        "claims": "qabench.benchmarks.expertqa.commands:claims",
        "attribute": "qabench.benchmarks.expertqa.commands:attribute",
        "facts": "qabench.benchmarks.expertqa.commands:facts",
    },
)
