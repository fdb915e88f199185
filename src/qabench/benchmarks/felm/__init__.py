"""FELM: segment-level factuality labels of model responses in five domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Need, Option, Setting
from qabench.benchmarks.felm.metrics import METRICS

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.official import Declaration
    from qabench.evaluation.record import ExtraSection
    from qabench.io.tables import Table

_METHODS = {
    "raw": "The response's numbered segments; an answer without reasons.",
    "cot": "Same as raw, with reasons before the answer.",
    "cot-cons": "Same as cot, sampled several times; the majority decides.",
    "link": "Same as raw, with the links of the references.",
    "content": "Same as raw, with the text of the references.",
}


class Felm(Benchmark):
    """Segment-level factuality labels of model responses in five domains."""

    name = "felm"
    title = "FELM"
    settings = tuple(Setting(name, "felm", about, {"method": name}) for name, about in _METHODS.items())
    part = "domains"
    metrics = METRICS
    headline = ("f1",)
    prediction_fields = ("reply", "labels", "answer")
    options = (
        Option(
            "reply_format",
            'Where replies name the wrong segments: answer (after "Answer: "), or vicuna (anywhere).',
            default="answer",
            choices=("answer", "vicuna"),
        ),
    )
    families = {"felm": "F1, precision and recall of errors, and balanced accuracy"}
    default_families = ("felm",)
    groupings = {"domain": "domain", "error type": "type of error"}
    needs = (
        Need("F1 and balanced accuracy of predictions"),
        Need("the responses, and the prompts of runs", "qabench fetch felm", files=("eval/all.jsonl", "eval/eval.py")),
    )

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of each signature's fields, by the signature's name."""
        from qabench.benchmarks.felm.official import DECLARATIONS

        return DECLARATIONS

    def evaluate(self, config: str | None, predictions: Predictions, **options: Any) -> Evaluation:
        """Score predictions; see ``qabench.benchmarks.felm.evaluate.evaluate``."""
        from qabench.benchmarks.felm.evaluate import evaluate

        return evaluate(self, config, predictions, **options)

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the format in which the run's replies are read."""
        vicuna = run.arguments.get("reply_format") == "vicuna" and run.arguments.get("method") != "cot-cons"
        return {"reply_format": "vicuna" if vicuna else "answer"}

    def prediction(self, record: Record) -> dict[str, Any]:
        """Return the fields of a prediction that would get the record's scores."""
        from qabench.benchmarks.felm.evaluate import prediction

        return prediction(record)

    def statistics(self, config: str, splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Table]:
        """Return the tables of ``qabench stats``."""
        from qabench.loading_scripts.felm.stats import tables

        return tables(config, splits)

    def reproduce(self) -> Reproduction:
        """Recompute the published numbers."""
        from qabench.benchmarks.felm.official import reproduce

        return reproduce()

    def report_sections(self, evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
        """Return the recall of errors by type of error, for labels and evaluations on one config."""
        from qabench.benchmarks.felm.evaluate import sections

        return sections(evaluations)


BENCHMARK = Felm()
