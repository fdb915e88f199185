"""FELM: segment-level factuality labels of model responses in five domains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Need, Option, Setting
from qabench.benchmarks.felm.formulas import COUNTS, FUNCTIONS, READABLE, RESPONSES, f1_of_counts
from qabench.evaluation.metric import Metric

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.evaluation import ExtraSection

_METHODS = {
    "raw": "The response's numbered segments; an answer without reasons.",
    "cot": "Same as raw, with reasons before the answer.",
    "cot-cons": "Same as cot, sampled several times; the majority decides.",
    "link": "Same as raw, with the links of the references.",
    "content": "Same as raw, with the text of the references.",
}
_SHOWN = {
    "f1": ("F1 (errors)", "Harmonic mean of precision and recall; the positive class is the error."),
    "precision": ("Precision (errors)", "Share of the {unit} judged wrong that are wrong."),
    "recall": ("Recall (errors)", "Share of the wrong {unit} that were judged wrong."),
    "balanced_accuracy": ("Balanced accuracy", "Mean of the recall of factual {unit} and of wrong {unit}."),
}


def _size(tp: float, tn: float, fp: float, fn: float) -> float:
    return tp + tn + fp + fn


def _judged_right(tp: float, tn: float, fp: float, fn: float) -> float:
    return (tp + tn) / _size(tp, tn, fp, fn)


def _metrics(prefix: str, before: str, unit: str, family: str = "felm", official: bool = True) -> list[Metric]:
    return [
        Metric(
            prefix + name,
            before + title,
            about.format(unit=unit),
            family,
            unit=unit,
            columns=tuple(prefix + count for count in COUNTS),
            function=FUNCTIONS[name],
            resampled=f1_of_counts if name == "f1" else None,
            size=_size,
            item=_judged_right,
            item_title=f"{unit} judged right",
            readable=READABLE + name if official else "",
            official=official,
            main=official and (not prefix or name in ("f1", "balanced_accuracy")),
        )
        for name, (title, about) in _SHOWN.items()
    ]


class Felm(Benchmark):
    """Segment-level factuality labels of model responses in five domains."""

    name = "felm"
    title = "FELM"
    settings = tuple(Setting(name, "felm", about, {"method": name}) for name, about in _METHODS.items())
    part = "domains"
    metrics = (
        *_metrics("", "", "segments"),
        *_metrics(RESPONSES, "Responses: ", "responses"),
        *_metrics(READABLE, "Readable replies only: ", "segments", "felm_readable", official=False),
    )
    headline = ("f1",)
    prediction_fields = ("reply", "labels", "answer")
    id_fields = ("id", "index")
    options = (
        Option(
            "reply_format",
            'Where replies name the wrong segments: answer (after "Answer: "), or vicuna (anywhere).',
            default="answer",
            choices=("answer", "vicuna"),
        ),
        Option("evaluator", "The model that wrote the replies. Only Vicuna's are officially read as vicuna."),
    )
    families = {"felm": "F1, precision and recall of errors, and balanced accuracy"}
    default_families = ("felm",)
    groupings = {"domain": "domain", "error type": "type of error"}
    needs = (
        Need("F1 and balanced accuracy of predictions"),
        Need("the responses, and the prompts of runs", "qabench fetch felm", files=("eval/all.jsonl", "eval/eval.py")),
    )

    def evaluate(self, config: str | None, predictions: Predictions, **options: Any) -> Evaluation:
        """Score predictions; see ``qabench.benchmarks.felm.evaluate.evaluate``."""
        from qabench.benchmarks.felm.evaluate import evaluate

        return evaluate(self, config, predictions, **options)

    def questions(self, config: str | None) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """Return each response's prompt and row by its index. A reply judges the row's ``segmented_response``."""
        from qabench.benchmarks.felm.evaluate import load_responses

        return {row["index"]: (row["prompt"], row) for row in load_responses(config).rows}

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the format in which the run's replies are read."""
        vicuna = run.arguments.get("reply_format") == "vicuna" and run.arguments.get("method") != "cot-cons"
        return {"reply_format": "vicuna" if vicuna else "answer"}

    def prediction(self, record: Record) -> dict[str, Any]:
        """Return {"reply"}: the reply, or the list of sampled replies; with {"claims"} if claims were judged."""
        replies = list(record.detail.get("replies") or [record.answer])
        claims = {"claims": list(record.detail["claims"])} if record.detail.get("claims") else {}
        return {"reply": replies[0] if len(replies) == 1 else replies} | claims

    def reproduce(self) -> Reproduction:
        """Recompute the published numbers."""
        from qabench.benchmarks.felm.official import reproduce

        return reproduce()

    def report_sections(self, evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
        """Return the recall of errors by type of error, for labels and evaluations on one config."""
        from qabench.benchmarks.felm.evaluate import sections

        return sections(evaluations)


BENCHMARK = Felm()
