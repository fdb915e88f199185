"""All of FanOutQA's scores of answers: one implementation for metrics, files of predictions and runs.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116); ``fanoutqa.eval.scorer.Scorer.score``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qabench.answers import check_pairs, text_of
from qabench.benchmarks.fanoutqa.accuracy import accuracy, found_strings
from qabench.benchmarks.fanoutqa.judge import Judge, Judged, judge_answers
from qabench.errors import InputError
from qabench.evaluation.metric import mean_in_order
from qabench.evaluation.signature import signature
from qabench.llm.client import Progress
from qabench.text import Normalizer
from qabench.text.rouge import ROUGE_TYPES, rouge

FAMILIES = ("acc", "rouge", "bleurt", "judge")
ROUGE_PARTS = ("precision", "recall", "fscore")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "acc": ("acc.loose", "acc.strict"),
    "rouge": tuple(f"{kind}.{part}" for kind in ROUGE_TYPES for part in ROUGE_PARTS),
    "bleurt": ("bleurt",),
    "judge": ("gpt", "gpt_readable"),
}

Bleurt = Callable[[list[str], list[str]], Sequence[float]]
"""References and candidates, two lists of strings, to one score for each pair."""


@dataclass(frozen=True)
class Scorers:
    """The function for each family of scores; families without one are left out. ROUGE does not need one."""

    normalizer: Normalizer | None = None
    rouge: bool = True
    bleurt: Bleurt | None = None
    judge: Judge | None = None


@dataclass
class Scores:
    """Scores of each question, by column: acc.loose, acc.strict, rouge1.precision, ..., bleurt, gpt, gpt_readable.

    Attributes:
        rows: column -> score, for each question in the order of the input. ``gpt`` is missing if the judge's call
            failed, ``gpt_readable`` if its reply has no readable verdict.
        details: for each question, "found" and "missing" (strings), "verdict", "judge" (its reply), "judge_problem".
        signatures: family -> everything that its scores depend on.
        judged: the judge's scores and costs; None without a judge.
    """

    rows: list[dict[str, float]]
    details: list[dict[str, Any]]
    signatures: dict[str, str] = field(default_factory=dict)
    judged: Judged | None = None

    @property
    def absent(self) -> dict[str, str]:
        """Score -> why it is missing."""
        return {"gpt": self.judged.absent} if self.judged and self.judged.absent else {}

    def columns(self) -> list[str]:
        """The columns of these families, whether or not a question has a score in them."""
        return [name for family in self.signatures for name in COLUMNS[family]]

    def add(self, column: str, values: Iterable[float]) -> None:
        """Adds a column."""
        for row, value in zip(self.rows, values, strict=True):
            row[column] = float(value)


def score_answers(
    questions: Sequence[str],
    references: Sequence[Any],
    predictions: Sequence[Any],
    scorers: Scorers,
    signed: Mapping[str, Any],
    progress: Progress | None = None,
) -> Scores:
    """Scores answers.

    Args:
        questions: the text of each question; only the judge needs them.
        references: answers as Python objects.
        predictions: one for each reference; ``UNANSWERED`` for no answer. See ``qabench.benchmarks.fanoutqa.accuracy``.
        scorers: the scores to compute.
        signed: the first fields of the signatures: everything that the scores depend on except the scorers.
        progress: called with the amount of work done, and of all work, first of accuracy and then of the judge.

    Raises:
        InputError: no questions, lists of different lengths, an empty list or dict as a reference, or a BLEURT
            function that returns another number of scores.
    """
    check_pairs(references, predictions)
    scores = Scores([{} for _ in references], [{} for _ in references])
    if scorers.normalizer:
        _add_accuracy(scores, references, predictions, scorers.normalizer, signed, progress)
    if scorers.rouge:
        _add_rouge(scores, references, predictions, signed)
    if scorers.bleurt:
        _add_bleurt(scores, references, predictions, scorers.bleurt, signed)
    if scorers.judge:
        _add_judge(scores, judge_answers(questions, references, predictions, scorers.judge, progress=progress), signed)
    return scores


def official_shape(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Scores in the shape of the official result.

    Returns:
        {"acc": {"loose", "strict"}, "rouge": {"rouge1": {"precision", "recall", "fscore"}, "rouge2": ...,
        "rougeL": ...}, "bleurt": float, "gpt": float}, without families that have no scores.
    """
    means = {
        name: mean_in_order([row[name] for row in rows if name in row])
        for name in dict.fromkeys(name for row in rows for name in row)
    }
    shape: dict[str, Any] = {}
    if "acc.loose" in means:
        shape["acc"] = {"loose": means["acc.loose"], "strict": means["acc.strict"]}
    if "rouge1.fscore" in means:
        shape["rouge"] = {kind: {part: means[f"{kind}.{part}"] for part in ROUGE_PARTS} for kind in ROUGE_TYPES}
    return shape | {name: means[name] for name in ("bleurt", "gpt") if name in means}


def _add_accuracy(
    scores: Scores,
    references: Sequence[Any],
    predictions: Sequence[Any],
    normalizer: Normalizer,
    signed: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    forms: dict[str, str] = {}

    def normalize(strings: Iterable[Any]) -> Mapping[str, str]:
        forms.update(normalizer.batch(strings, progress))
        return forms

    found = accuracy(references, predictions, normalize).per_question
    scores.add("acc.loose", (one.loose for one in found))
    scores.add("acc.strict", (one.strict for one in found))
    for reference, one, detail in zip(references, found, scores.details, strict=True):
        detail |= {"found": found_strings(reference, forms, one.missing), "missing": list(one.missing)}
    scores.signatures["acc"] = signature("fanout_acc", **signed, **normalizer.signature())


def _add_rouge(
    scores: Scores, references: Sequence[Any], predictions: Sequence[Any], signed: Mapping[str, Any]
) -> None:
    found = rouge(references, predictions)
    for kind in ROUGE_TYPES:
        for part in ROUGE_PARTS:
            scores.add(f"{kind}.{part}", (getattr(one[kind], part) for one in found.per_question))
    scores.signatures["rouge"] = signature("fanout_rouge", **signed, rouge=found.backend, stemmer="porter")


def _add_bleurt(
    scores: Scores, references: Sequence[Any], predictions: Sequence[Any], bleurt: Bleurt, signed: Mapping[str, Any]
) -> None:
    # An unanswered question is the empty string, as upstream.
    values = list(bleurt(list(map(text_of, references)), list(map(text_of, predictions))))
    if len(values) != len(references):
        raise InputError(f"the BLEURT function returned {len(values)} scores for {len(references)} questions")
    scores.add("bleurt", values)
    name = getattr(bleurt, "name", None) or getattr(bleurt, "__name__", type(bleurt).__name__)
    scores.signatures["bleurt"] = signature("fanout_bleurt", **signed, bleurt=name)


def _add_judge(scores: Scores, judged: Judged, signed: Mapping[str, Any]) -> None:
    scores.judged = judged
    scores.signatures["judge"] = signature("fanout_judge", **signed, **judged.judge.signature())
    if judged.score is None or judged.absent:
        return
    for row, detail, one in zip(scores.rows, scores.details, judged.score.per_question, strict=True):
        row |= {} if one.score is None else {"gpt": float(one.score)}
        row |= {} if one.readable is None else {"gpt_readable": float(one.readable)}
        detail |= {"verdict": one.verdict, "judge": one.reply, "judge_problem": one.reason}
