"""fastbook-benchmark: retrieval questions over seven chapters of the fastai book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Need, Option, Setting
from qabench.evaluation.metric import Metric

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.evaluation import ExtraSection


def _mean(values: Sequence[float]) -> float:
    from qabench.benchmarks.fastbook.answer_components import mean_of

    return mean_of(values)


class Fastbook(Benchmark):
    """Retrieval questions over seven chapters of the fastai book."""

    name = "fastbook"
    title = "fastbook-benchmark"
    families_without_model = ("retrieval",)
    settings = (Setting("rag", "fastbook_rag", "The question and the passages retrieved for it."),)
    part = "chapters"
    metrics = (
        Metric(
            "mrr@k",
            "MRR@k",
            "1 / rank at which all components of the answer are retrieved; 0 if this rank is above k.",
            "retrieval",
            mean=_mean,
        ),
        Metric(
            "recall@k", "Recall@k", "Share of the answer's components retrieved in the top k.", "retrieval", mean=_mean
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
    )
    headline = ("recall@10", "recall")
    families = {
        "retrieval": "Answer Component MRR@k and Recall@k",
        "rouge": "ROUGE F-measures of the answers; not a score of the benchmark's authors",
    }
    default_families = ("retrieval",)
    groupings = {"chapter": "chapter"}
    needs = (
        Need("MRR@k and Recall@k"),
        Need("the questions", "qabench fetch fastbook", files=("fastbook-benchmark.json",)),
    )
    options = (
        Option("k", "The cutoffs, separated by commas.", default="10", metavar="N,N"),
        Option(
            "corpus",
            'The texts of the documents of a TREC run: JSONL, one {"docno", "text"} per line.',
            Path,
            for_reading=True,
        ),
    )
    prediction_fields = ("passages", "answer")
    commands = ("retrieve",)

    def questions(self, config: str | None) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """Return the text and the row of each question by its id."""
        from qabench.benchmarks.fastbook.evaluate import load_questions

        return {row["id"]: (row["question_text"], row) for row in load_questions(config).rows}

    def evaluate(self, config: str | None, predictions: Predictions, **options: Any) -> Evaluation:
        """Score predictions; see ``qabench.benchmarks.fastbook.evaluate.evaluate``."""
        from qabench.benchmarks.fastbook.evaluate import evaluate

        return evaluate(self, config, predictions, **options)

    def read(self, source: str | Path | Sequence[Mapping[str, Any]], **options: Any) -> Predictions:
        """Read predictions, also TREC runs; see ``qabench.benchmarks.fastbook.evaluate.read``."""
        from qabench.benchmarks.fastbook.evaluate import read

        return read(source, **options)

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the run's families of scores and its cutoff."""
        return {"families": [name for name in self.families if name in run.signatures], "k": run.arguments.get("k", 10)}

    def prediction(self, record: Record) -> dict[str, Any]:
        """Return the fields of a prediction that would get the record's scores."""
        from qabench.benchmarks.fastbook.evaluate import prediction

        return prediction(record)

    def reproduce(self) -> Reproduction:
        """Recompute the published numbers."""
        from qabench.benchmarks.fastbook.reproduce import reproduce

        return reproduce()

    def leaderboards(self) -> Mapping[str, Sequence[str]]:
        """Return the author's scores, at his cutoff."""
        return {"questions": ("mrr@10", "recall@10")}

    def report_sections(self, evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
        """Return the scores at each cutoff, for labels and evaluations on one config."""
        from qabench.benchmarks.fastbook.evaluate import sections

        return sections(evaluations)


BENCHMARK = Fastbook()
