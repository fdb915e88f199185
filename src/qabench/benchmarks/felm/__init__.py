"""FELM: segment-level factuality labels of model responses in five domains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.declared import Leaderboards, Need, Option, Setting
from qabench.benchmarks.felm.formulas import COLUMNS, FUNCTIONS, READABLE, RESPONSES, f1_of_counts
from qabench.data.rows import Row
from qabench.errors import SourceError
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scoring import Question, Questions

if TYPE_CHECKING:
    from qabench.benchmarks.felm.judging import FelmJudging
    from qabench.benchmarks.felm.logs import FelmLogs
    from qabench.benchmarks.felm.method import FelmMethod
    from qabench.benchmarks.felm.numbers import FelmNumbers
    from qabench.benchmarks.felm.scorer import FelmScorer
    from qabench.benchmarks.report import Report
    from qabench.data.joining import Joined
    from qabench.data.predictions import Predictions
    from qabench.evaluation.signature import Declaration

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
_METHODS = {
    "raw": "The response's numbered segments; an answer without reasons.",
    "cot": "Same as raw, with reasons before the answer.",
    "cot-cons": "Same as cot, sampled several times; the majority decides.",
    "link": "Same as raw, with the links of the references.",
    "content": "Same as raw, with the text of the references.",
}
_UNDEFINED = {
    "f1": "no {unit} are wrong, or none were judged wrong",
    "precision": "no {unit} were judged wrong",
    "recall": "no {unit} are wrong",
    "balanced_accuracy": "no {unit} are wrong, or all are",
}
_SHOWN = {
    "f1": (
        "F1 (errors)",
        "Harmonic mean of precision and recall; the positive class is the error.",
    ),
    "precision": ("Precision (errors)", "Share of the {unit} judged wrong that are wrong."),
    "recall": ("Recall (errors)", "Share of the wrong {unit} that were judged wrong."),
    "balanced_accuracy": (
        "Balanced accuracy",
        "Mean of the recall of factual {unit} and of wrong {unit}.",
    ),
}


def _size(tp: float, tn: float, fp: float, fn: float) -> float:
    return tp + tn + fp + fn


def _judged_right(tp: float, tn: float, fp: float, fn: float) -> float:
    return (tp + tn) / _size(tp, tn, fp, fn)


def _metrics(
    prefix: str, before: str, unit: str, group: str = "felm", official: bool = True
) -> list[ScoreSpec]:
    columns = tuple(prefix + column for column in COLUMNS)
    specs = []
    for name, (title, description) in _SHOWN.items():
        spec = ScoreSpec(
            prefix + name,
            before + title,
            description.format(unit=unit),
            group,
            unit=unit,
            columns=columns,
            function=FUNCTIONS[name],
            size=_size,
            undefined=_UNDEFINED[name].format(unit=unit),
            item=_judged_right,
            item_title=f"{unit} judged right",
            official=official,
            main=official and (not prefix or name in ("f1", "balanced_accuracy")),
        )
        if name == "f1":
            spec = replace(spec, resampled=f1_of_counts)
        if official:
            spec = replace(spec, readable=READABLE + name)
        specs.append(spec)
    return specs


def _settings() -> tuple[Setting, ...]:
    settings = []
    for name, description in _METHODS.items():
        setting = Setting(
            name, "felm", description, {"method": name}, solver=("qabench/find_errors",)
        )
        settings.append(setting)
    return tuple(settings)


# "gen" is the column of replies in the files that the authors' script writes.
REPLY_FIELDS = ("reply", "answer", "gen")


class Felm(Benchmark):
    """Segment-level factuality labels of model responses in five domains."""

    name = "felm"
    title = "FELM"
    settings = _settings()
    part = "domains"
    # Estimates of calls use this reply instead of the model's. If it had no claims, the calls that
    # judge claims would not be counted.
    planned_reply = "Segment 1:\nClaim 1. A claim."
    scores = (
        *_metrics("", "", "segments"),
        *_metrics(RESPONSES, "Responses: ", "responses"),
        *_metrics(READABLE, "Readable replies only: ", "segments", "felm_readable", official=False),
    )
    headline = ("f1",)
    prediction_fields = ("reply", "labels", "answer", "gen")
    answer_fields = prediction_fields
    id_fields = ("id", "index")
    options = (
        Option(
            "reply_format",
            'Where replies name the wrong segments: answer (after "Answer: "), or vicuna (anywhere).',
            default="answer",
            choices=("answer", "vicuna"),
            fields=REPLY_FIELDS,
        ),
        Option(
            "evaluator",
            "The model that wrote the replies. Only Vicuna's are officially read as vicuna.",
            fields=REPLY_FIELDS,
        ),
    )
    groups = {"felm": "F1, precision and recall of errors, and balanced accuracy"}
    default_groups = ("felm",)
    groupings = {"domain": "domain", "error type": "type of error"}
    leaderboards = Leaderboards(dict.fromkeys(("all", *DOMAINS), ("felm",)))
    needs = (
        Need("F1 and balanced accuracy of predictions"),
        Need(
            "the responses, and the prompts of runs",
            "qabench fetch felm",
            files=("eval/all.jsonl", "eval/eval.py"),
        ),
    )

    def read_rows(self, path: Path, config: str) -> Iterable[Row]:
        """Return the responses of a config, or of a file like the authors' ``eval/all.jsonl``."""
        from qabench.loading_scripts.felm.parse import read_rows

        return read_rows(path, config)

    def question(self, row: Row) -> Question:
        """Return a response as a question. The reference is a reply with the right verdicts."""
        from qabench.benchmarks.felm.scores import as_reply

        # The type of a segment may also be null or "".
        types = set(filter(None, row["type"]))
        groups = {"domain": [row["domain"]], "error type": sorted(types)}
        return Question(row["index"], row["prompt"], as_reply(tuple(row["labels"])), groups, row)

    def join(
        self,
        loaded: Questions,
        predictions: Predictions,
        groups: Sequence[str],
        options: Mapping[str, Any],
    ) -> Joined:
        """Join predictions to the responses of a config, ignoring those for other domains."""
        from qabench.data.joining import with_other_parts

        joined = super().join(loaded, predictions, groups, options)
        # A file of predictions often covers all domains. If the config is one domain, predictions
        # for other domains are not reported as unknown.
        if not joined.unknown or loaded.config not in DOMAINS:
            return joined
        try:
            ids = {question.id for question in self.load("all", None).rows}
        except SourceError:
            # The ids of other domains are unknown, because the dataset is not on this machine.
            return joined
        return with_other_parts(joined, ids, self.part)

    def scorer(self, groups: Sequence[str], **options: Any) -> FelmScorer:
        """Return the scorer. ``groups`` is ignored, because there is only one group of scores."""
        from qabench.benchmarks.felm.scorer import FelmScorer

        return FelmScorer(**options)

    def asking(self, **arguments: Any) -> FelmMethod:
        """Return how a model is asked."""
        from qabench.benchmarks.felm.method import FelmMethod

        return FelmMethod(**arguments)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the function that plans a run with any method."""
        from qabench.benchmarks.felm.tasks import felm

        return {"felm": felm}

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        from qabench.benchmarks.felm.official import DECLARATIONS

        return DECLARATIONS

    def logs(self) -> FelmLogs:
        """Return what is specific to FELM in logs of runs."""
        from qabench.benchmarks.felm.logs import FelmLogs

        return FelmLogs(self)

    def judging(self) -> FelmJudging:
        """Return the object for the evaluator's verdicts on segments and the annotators' labels."""
        from qabench.benchmarks.felm.judging import FelmJudging

        return FelmJudging(self)

    def numbers(self) -> FelmNumbers:
        """Return the object that computes the statistics of FELM's data."""
        from qabench.benchmarks.felm.numbers import FelmNumbers

        return FelmNumbers(self)

    def report(self) -> Report:
        """Return what FELM adds to reports: the recall of errors by type of error."""
        from qabench.benchmarks.felm.details import DETAILS
        from qabench.benchmarks.felm.scorer import sections
        from qabench.benchmarks.report import Report

        return Report(sections=sections, details=DETAILS)


BENCHMARK = Felm()
