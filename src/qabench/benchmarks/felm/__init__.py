"""FELM: segment-level factuality labels of model responses in five domains."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Leaderboards, Need, Option, Setting
from qabench.benchmarks.felm.formulas import COUNTS, FUNCTIONS, READABLE, RESPONSES, f1_of_counts
from qabench.data.rows import Json, Row
from qabench.errors import SourceError
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scoring import Messages, Question, Questions

if TYPE_CHECKING:
    from qabench.benchmarks.felm.method import FelmMethod
    from qabench.benchmarks.felm.scorer import FelmScorer
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Joined, Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.records import ExtraSection
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
    "f1": ("F1 (errors)", "Harmonic mean of precision and recall; the positive class is the error."),
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
    return [
        ScoreSpec(
            prefix + name,
            before + title,
            about.format(unit=unit),
            group,
            unit=unit,
            columns=tuple(prefix + count for count in COUNTS),
            function=FUNCTIONS[name],
            resampled=f1_of_counts if name == "f1" else None,
            size=_size,
            undefined=_UNDEFINED[name].format(unit=unit),
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
    settings = tuple(
        Setting(name, "felm", about, {"method": name}, solver=("qabench/find_errors",))
        for name, about in _METHODS.items()
    )
    generation_fields = MappingProxyType({"sampling_temperature": "temperature"})
    part = "domains"
    planned_reply = "Segment 1:\nClaim 1. A claim."  # else claims would not be judged
    scores = (
        *_metrics("", "", "segments"),
        *_metrics(RESPONSES, "Responses: ", "responses"),
        *_metrics(READABLE, "Readable replies only: ", "segments", "felm_readable", official=False),
    )
    headline = ("f1",)
    prediction_fields = ("reply", "labels", "answer", "gen")
    id_fields = ("id", "index")
    options = (
        Option(
            "reply_format",
            'Where replies name the wrong segments: answer (after "Answer: "), or vicuna (anywhere).',
            default="answer",
            choices=("answer", "vicuna"),
        ),
        Option(
            "evaluator", "The model that wrote the replies. Only Vicuna's are officially read as vicuna."
        ),
    )
    groups = {"felm": "F1, precision and recall of errors, and balanced accuracy"}
    default_groups = ("felm",)
    counted_by = "domain"
    groupings = {"domain": "domain", "error type": "type of error"}
    log_kinds = {
        "detail": {
            "segments": ([{"label": bool, "type": str | None}], None),
            "replies": ([str | None], None),
            "claims": (list, None),
        },
        "arguments": {"num_cons": int | None},
    }
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
        """Return the responses of a config, also from a file in the format of the authors' ``eval/all.jsonl``."""
        from qabench.loading_scripts.felm.parse import read_rows

        return read_rows(path, config)

    def question(self, row: Row) -> Question:
        """Return a response.

        A reply judges the row's ``segmented_response``. The reference states the labels.
        """
        from qabench.benchmarks.felm.scores import as_reply

        types = sorted({kind for kind in row["type"] if kind})
        groups = {"domain": [row["domain"]], "error type": types}
        return Question(row["index"], row["prompt"], as_reply(tuple(row["labels"])), groups, row)

    def join(
        self,
        loaded: Questions,
        predictions: Predictions,
        groups: Sequence[str],
        options: Mapping[str, Any],
    ) -> Joined:
        """Join predictions to the responses of a config; those to responses of other domains are not unknown."""
        from qabench.data.predictions import with_other_parts

        joined = super().join(loaded, predictions, groups, options)
        if not joined.unknown or loaded.config not in DOMAINS:
            return joined
        try:
            ids = {question.id for question in self.load("all", None).rows}
        except SourceError:  # the predictions are for custom questions, and the dataset is not here
            return joined
        return with_other_parts(joined, ids, self.part)

    def scorer(self, groups: Sequence[str], **options: Any) -> FelmScorer:
        """Return the scorer.

        There is only one group of scores.
        """
        from qabench.benchmarks.felm.scorer import FelmScorer

        return FelmScorer(**options)

    def asking(self, **arguments: Any) -> FelmMethod:
        """Return how a model is asked."""
        from qabench.benchmarks.felm.method import FelmMethod

        return FelmMethod(**arguments)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the Inspect task of all methods."""
        from qabench.benchmarks.felm.tasks import felm

        return {"felm": felm}

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        from qabench.benchmarks.felm.official import DECLARATIONS

        return DECLARATIONS

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``."""
        true = sum(row["labels"])
        counts = {
            "responses": 1,
            "segments": len(row["labels"]),
            "true": true,
            "errors": len(row["labels"]) - true,
        }
        return counts | Counter(filter(None, row["type"]))

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the evaluator, and the format in which its replies are read."""
        vicuna = (
            run.arguments.get("reply_format") == "vicuna" and run.arguments.get("method") != "cot-cons"
        )
        return {"reply_format": "vicuna" if vicuna else "answer", "evaluator": run.model}

    def prediction(self, record: Record) -> Json:
        """Return {"reply"}: the reply, or the list of sampled replies.

        With {"claims"} if claims were judged.
        """
        replies = list(record.detail.get("replies") or [record.answer])
        from qabench.evaluation import EMPTY

        if record.status == EMPTY:  # the task records no text, but the model has replied
            replies = ["" if reply is None else reply for reply in replies]
        claims = {"claims": list(record.detail["claims"])} if record.detail.get("claims") else {}
        return {"reply": replies[0] if len(replies) == 1 else replies} | claims

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Callable[[Row, Record], Sequence[Messages]]:
        """Return how the messages that ask for verdicts, or first for claims, are rendered."""
        from qabench.tasks.prompts import check_label, origin_of

        names = ("method", "claims", "num_cons", "official_quirks", "reply_format")
        options = {name: arguments[name] for name in names if arguments.get(name) is not None}
        with warnings.catch_warnings(action="ignore"):  # the run has already warned of its prompts
            asking = self.asking(
                **{**setting.arguments, **options, "prompt": origin_of(prompt, arguments)}
            )
        check_label(prompt, [asking.prompts.label])

        def render(row: Row, record: Record) -> Sequence[Messages]:
            if asking.by_claims(row):
                return [asking.extraction_messages(row)]
            return [asking.messages(row)]

        return render

    def scored_replies(self, record: Record) -> list[str]:
        """Return the replies, of which cot-cons has several."""
        return [reply for reply in record.detail.get("replies") or () if reply is not None]

    def reproduce(self) -> Reproduction:
        """Recompute the published numbers."""
        from qabench.benchmarks.felm.official import reproduce

        return reproduce(super().reproduce())

    def report_sections(self, evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
        """Return the recall of errors by type of error, for labels and evaluations on one config."""
        from qabench.benchmarks.felm.scorer import sections

        return sections(evaluations)


BENCHMARK = Felm()
