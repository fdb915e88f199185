"""ExpertQA's metrics, computed from the columns that ``columns.py`` writes into ``Record.scores``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import nan
from typing import Any

from qabench.evaluation.metric import Metric

ROUGE, AUTOAIS, AUTOAIS_AGREEMENT, FACT_SCORE, FACT_SCORE_AGREEMENT = FAMILIES = (
    "rouge",
    "autoais",
    "autoais_agreement",
    "fact_score",
    "fact_score_agreement",
)
COUNTS = ("tp", "tn", "fp", "fn")


def _share(part: Any, whole: Any) -> Any:
    return part / whole


def _own_share(part: float, whole: float) -> float:
    return part / whole if whole else nan


def _own_accuracy(tp: float, tn: float, fp: float, fn: float) -> float:
    return _own_share(tp + tn, tp + tn + fp + fn)


def _whole(part: float, whole: float) -> float:
    return whole


def _accuracy(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    return (tp + tn) / (tp + tn + fp + fn)


def _precision(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    return tp / (tp + fp)


def _recall(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    return tp / (tp + fn)


def _f1(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    return 2 * tp / (2 * tp + fp + fn)


def _claims(tp: float, tn: float, fp: float, fn: float) -> float:
    return tp + tn + fp + fn


def _numpy_mean(values: Sequence[float]) -> float:
    import numpy as np

    return float(np.mean(values))


def _median_of_means(kind: str, values: Sequence[float]) -> float:
    from qabench.benchmarks.expertqa.lfqa import median_of_means

    return median_of_means(kind, values)


def _ratio(name: str, title: str, about: str, columns: tuple[str, str], **options: Any) -> Metric:
    return Metric(
        name,
        title,
        about,
        columns=columns,
        unit="claims",
        function=_share,
        size=_whole,
        item=_own_share,
        partial=True,
        **options,
    )


def _rouge(kind: str, title: str) -> Metric:
    about = (
        f"F-measure of {title} between answer and reference answer: the median over 1,000 bootstrap samples of the "
        "mean over questions, as in evaluate's metric rouge, with seed 0."
    )
    return Metric(kind, title, about, ROUGE, mean=partial(_median_of_means, kind), item_title=title)


def _mean_over_answers(name: str, title: str, about: str) -> Metric:
    return Metric(
        name, title, about, AUTOAIS, unit="answers", columns=(name,), mean=_numpy_mean, graded=True, partial=True,
        item_title="Share of counted claims that are supported",
    )  # fmt: skip


def _agreement(family: str, model_says: str, positive: str) -> list[Metric]:
    """Accuracy, and precision, recall and F1 of both classes."""
    columns = tuple(f"{family}.{count}" for count in COUNTS)
    key, name = positive.lower(), "AutoAIS" if family == AUTOAIS_AGREEMENT else "fact score"
    options: dict[str, Any] = {
        "family": family,
        "unit": "claims",
        "size": _claims,
        "item": _own_accuracy,
        "item_title": "Share of claims labeled as by the experts",
        "partial": True,
    }
    found = [
        Metric(
            f"{family}.accuracy",
            f"Agreement of {name}: accuracy",
            f"Share of claims for which {model_says} if and only if the experts chose {positive}.",
            columns=columns,
            function=_accuracy,
            graded=True,
            **options,
        )
    ]
    # Exchanging tp and tn, and fp and fn, makes the other class the positive one.
    turned = tuple(columns[COUNTS.index(count)] for count in ("tn", "tp", "fn", "fp"))
    measures: dict[str, tuple[Callable[..., Any], str]] = {
        "precision": (_precision, "precision"),
        "recall": (_recall, "recall"),
        "f1": (_f1, "F1"),
    }
    for of, title, its_columns in ((key, positive, columns), (f"not_{key}", f"not {positive}", turned)):
        found += [
            Metric(
                f"{family}.{of}.{measure}",
                f"Agreement of {name}: {shown} of {title}",
                f"{shown[0].upper()}{shown[1:]} of the class {title} among the experts' labels.",
                columns=its_columns,
                function=function,
                **options,
            )
            for measure, (function, shown) in measures.items()
        ]
    return found


METRICS = (
    _mean_over_answers(
        "autoais_macro",
        "AutoAIS (mean over answers)",
        "Mean over answers of the share of counted claims that are entailed by their evidence.",
    ),
    _ratio(
        "autoais_micro",
        "AutoAIS (over all claims)",
        "Share of all counted claims that are entailed by their evidence.",
        ("claims_supported", "claims_counted"),
        family=AUTOAIS,
    ),
    _mean_over_answers(
        "autoais_macro_without_abstentions",
        "AutoAIS without abstaining answers (mean over answers)",
        "Same as autoais_macro, without the answers that abstain.",
    ),
    _ratio(
        "autoais_micro_without_abstentions",
        "AutoAIS without abstaining answers (over all claims)",
        "Same as autoais_micro, without the answers that abstain.",
        ("claims_supported_without_abstentions", "claims_counted_without_abstentions"),
        family=AUTOAIS,
    ),
    *_agreement(AUTOAIS_AGREEMENT, "the label is Y", "Complete"),
    *_agreement(FACT_SCORE_AGREEMENT, "the fact score is at least 0.5", "Correct"),
    _ratio(
        "fact_score",
        "Fact score",
        "Mean over claims of the share of their atomic claims that a model finds true.",
        ("fact_score_sum", "claims_with_fact_score"),
        family=FACT_SCORE,
        graded=True,
        official=False,
    ),
    *(
        _rouge(kind, title)
        for kind, title in (
            ("rouge1", "ROUGE-1"),
            ("rouge2", "ROUGE-2"),
            ("rougeL", "ROUGE-L"),
            ("rougeLsum", "ROUGE-Lsum"),
        )
    ),
    _ratio(
        "evidence",
        "Claims with evidence",
        "Share of claims that have evidence, whether or not it supports them.",
        ("claims_with_evidence", "claims"),
        family=AUTOAIS,
        official=False,
    ),
    Metric(
        "abstains",
        "Answers that abstain",
        "Share of answers that contain one of the authors' phrases of abstention, such as \"I don't know\".",
        AUTOAIS,
        unit="answers",
        partial=True,
        higher_is_better=False,
        official=False,
    ),
)
