"""What figures and groups are called for people, how they are ordered, and the one score that stands for an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isfinite, nan
from typing import Any

from qabench.evaluation import Evaluation, Record
from qabench.runs.corpus import COUNTS, OFFICIAL, RESPONSES

# right: everything; none: it has no score.
OUTCOMES = ("right", "partly", "wrong", "none")
OUTCOME_NAMES = ("right", "partly right", "wrong", "no score")
_ROUNDING = 1e-9

_FIGURES = {
    "acc.loose": "Loose accuracy",
    "loose": "Loose accuracy",
    "acc.strict": "Strict accuracy",
    "strict": "Strict accuracy",
    "bleurt": "BLEURT",
    "gpt": "LLM judge",
    "judge": "LLM judge",
    "f1": "F1 (errors)",
    "precision": "Precision (errors)",
    "recall": "Recall (errors)",
    "balanced_accuracy": "Balanced accuracy",
    "tp": "Factual, judged factual",
    "tn": "Errors found",
    "fp": "Errors missed",
    "fn": "False alarms",
    "autoais_macro": "AutoAIS (mean over answers)",
    "autoais_micro": "AutoAIS (over all claims)",
    "autoais": "AutoAIS",
    "evidence": "Claims with evidence",
}
_ABOUT = {
    "acc.loose": "Mean share of the reference's strings found in the answer.",
    "acc.strict": "Share of answers in which every string of the reference is found.",
    "f1": "Harmonic mean of precision and recall; the positive class is the error.",
    "precision": "Share of the segments called wrong that are wrong.",
    "recall": "Share of the wrong segments that were called wrong.",
    "balanced_accuracy": "Mean of the recall of factual segments and of wrong ones.",
    "autoais_macro": "Mean over answers of the share of claims that their cited evidence entails.",
    "autoais_micro": "Share of all claims that their cited evidence entails.",
    "evidence": "Share of claims that cite evidence.",
    "mrr": "1 / rank at which the whole answer has been retrieved; 0 if it is not within k.",
    "recall@": "Share of the answer's components retrieved within k.",
}
_PREFIXES = {RESPONSES: "Responses", OFFICIAL: "No verdict as factual"}
_PREFIXED = {
    RESPONSES: "Of whole responses, which are factual where all their segments are.",
    OFFICIAL: "A response without a verdict counts as judged factual throughout, as in the official script.",
}
_ABOUT |= {"loose": _ABOUT["acc.loose"], "strict": _ABOUT["acc.strict"]}
_GROUPINGS = {
    "category": "category",
    "type": "type of answer",
    "evidence": "number of evidence documents",
    "question_type": "type of question",
    "error type": "type of error",
}
# The figure that stands for an answer, by benchmark, the first that it has; in the others its first figure.
SEGMENTS = "segments"  # FELM's own: no figure of the records
_HEADLINES = {
    "fanoutqa": ("acc.loose", "loose"),
    "expertqa": ("autoais", "evidence"),
    "fastbook": ("recall",),
}


def figure_name(figure: str) -> str:
    """The figure's name for people: "Loose accuracy", "MRR@10"; its own name where it has no other."""
    for prefix, means in _PREFIXES.items():
        if figure.startswith(prefix):
            return f"{means}: {figure_name(figure.removeprefix(prefix))}"
    if figure in _FIGURES:
        return _FIGURES[figure]
    if found := re.fullmatch(r"(rouge)(1|2|Lsum|L)(?:\.(\w+))?", figure):
        part = {None: "", "fscore": " F", "fmeasure": " F"}.get(found[3], f" {found[3]}")
        return f"ROUGE-{found[2]}{part}"
    if found := re.fullmatch(r"(mrr|recall)@(\d+)", figure):
        return f"{'MRR' if found[1] == 'mrr' else 'Recall'}@{found[2]}"
    text = re.sub(r"[._]+", " ", figure).strip()
    return text[:1].upper() + text[1:] or figure


def figure_about(figure: str) -> str:
    """What the figure measures, in a sentence; "" where its name must do."""
    for prefix, about in _PREFIXED.items():
        if figure.startswith(prefix):
            return about
    name, at, _ = figure.partition("@")
    return _ABOUT.get(name + at) or _ABOUT.get(name if at else figure, "")


def grouping_name(grouping: str) -> str:
    """What a grouping is by: "type of answer"."""
    return _GROUPINGS.get(grouping, grouping.replace("_", " "))


def headline_of(benchmark: str, runs: Iterable[Evaluation]) -> str:
    """The figure that stands for an answer in the list of questions, one for all runs of a section.

    FanOutQA: loose accuracy; FELM: the share of segments judged as people did; ExpertQA: of claims that their evidence
    supports, or where no run has that, of claims with evidence; fastbook: of components retrieved.
    """
    if benchmark == "felm":
        return SEGMENTS
    names = list(dict.fromkeys(name for run in runs for record in run.records for name in record.scores))
    wanted = [name for first in _HEADLINES.get(benchmark, ()) for name in names if name.partition("@")[0] == first]
    return (wanted or names or [""])[0]


def headline_name(figure: str) -> str:
    """What ``headline_of`` gave, for people."""
    if figure == SEGMENTS:
        return "segments judged right"
    name = figure_name(figure) or "score"
    return name if name[:2].isupper() else name[:1].lower() + name[1:]


def headline(figure: str, record: Record) -> float | None:
    """A record's score by the figure of ``headline_of``; None where it has none."""
    if figure == SEGMENTS and set(COUNTS) <= set(record.scores):
        total = sum(record.scores[name] for name in COUNTS)
        value = (record.scores["tp"] + record.scores["tn"]) / total if total else nan
    else:
        value = record.scores.get(figure, nan)
    return value if isfinite(value) else None


def outcome(score: float | None) -> str:
    """Which of ``OUTCOMES`` a headline score is."""
    if score is None:
        return "none"
    return "right" if score > 1 - _ROUNDING else "partly" if score > _ROUNDING else "wrong"


def natural(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of groups in the order of the numbers in their names where all have one; else as they are."""
    numbers = [re.search(r"\d+", row["group"]) for row in rows]
    if not all(numbers):
        return list(rows)
    order = {id(row): int(found[0]) for row, found in zip(rows, numbers, strict=True) if found}
    return sorted(rows, key=lambda row: order[id(row)])
