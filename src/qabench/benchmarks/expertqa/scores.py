"""ExpertQA's scores: names, titles, and formulas over the columns of answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import truediv
from typing import Any

from qabench.evaluation.score_spec import ScoreSpec

_MEASURES: dict[str, Callable[..., Any]] = {
    "precision": lambda tp, tn, fp, fn: tp / (tp + fp),
    "recall": lambda tp, tn, fp, fn: tp / (tp + fn),
    "F1": lambda tp, tn, fp, fn: 2 * tp / (2 * tp + fp + fn),
}


def _accuracy(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    return (tp + tn) / _total(tp, tn, fp, fn)


def _total(tp: float, tn: float, fp: float, fn: float) -> float:
    return tp + tn + fp + fn


def _numpy_mean(values: Sequence[float]) -> float:
    import numpy as np

    # NumPy sums pairwise, as in the official script. The built-in sum would differ in the last
    # digits.
    return float(np.mean(values))


def _ratio(
    name: str, title: str, about: str, columns: tuple[str, str], **options: Any
) -> ScoreSpec:
    return ScoreSpec(
        name,
        title,
        about,
        columns=columns,
        unit="claims",
        partial=True,
        function=truediv,
        size=lambda part, whole: whole,
        item=truediv,
        **options,
    )


def _rouge(kind: str) -> ScoreSpec:
    title = kind.replace("rouge", "ROUGE-")
    about = (
        f"F-measure of {title} between answer and reference answer: the median over 1,000 bootstrap samples of the "
        "mean over questions, as in evaluate's metric rouge, with seed 0."
    )

    def median(values: Sequence[float]) -> float:
        from qabench.benchmarks.expertqa.lfqa import median_of_means

        return median_of_means(kind, values)

    return ScoreSpec(
        kind, title, about, "rouge", mean=median, item_title=title, main=kind != "rougeLsum"
    )


def _autoais(suffix: str, title: str, *abouts: str) -> tuple[ScoreSpec, ScoreSpec]:
    """Return the specs of AutoAIS as a mean over answers, and over all claims."""
    macro, micro, main = f"autoais_macro{suffix}", f"autoais_micro{suffix}", not suffix
    columns = (f"claims_supported{suffix}", f"claims_counted{suffix}")
    over_answers = ScoreSpec(
        macro,
        f"{title} (mean over answers)",
        abouts[0],
        "autoais",
        unit="answers",
        columns=(macro,),
        mean=_numpy_mean,
        graded=True,
        partial=True,
        item_title="Share of counted claims that are supported",
        main=main,
    )
    return over_answers, _ratio(
        micro, f"{title} (over all claims)", abouts[1], columns, group="autoais", main=main
    )


def _agreement(group: str, name: str, model_says: str, positive: str) -> list[ScoreSpec]:
    """Return the specs of accuracy, and of precision, recall and F1 of both classes."""
    tp, tn, fp, fn = f"{group}.tp", f"{group}.tn", f"{group}.fp", f"{group}.fn"
    columns = (tp, tn, fp, fn)
    # With these columns, the negative class becomes the positive one.
    inverse = (tn, tp, fn, fp)
    options: dict[str, Any] = {
        "group": group,
        "unit": "claims",
        "size": _total,
        "item": _accuracy,
        "item_title": "Share of claims labeled as by the experts",
        "partial": True,
    }
    title = f"Agreement of {name}: accuracy"
    about = f"Share of claims for which {model_says} if and only if the experts chose {positive}."
    specs = [
        ScoreSpec(
            f"{group}.accuracy",
            title,
            about,
            columns=columns,
            function=_accuracy,
            graded=True,
            **options,
        )
    ]
    for key, label, counts in (
        (positive, positive, columns),
        (f"not_{positive}", f"not {positive}", inverse),
    ):
        for measure, function in _MEASURES.items():
            spec = ScoreSpec(
                f"{group}.{key}.{measure}".lower(),
                f"Agreement of {name}: {measure} of {label}",
                f"{measure[0].upper()}{measure[1:]} of the class {label} among the experts' labels.",
                columns=counts,
                function=function,
                main=measure == "F1",
                **options,
            )
            specs.append(spec)
    return specs


# The name, column, group, title and description of each score. The module citations has the papers.
_OF_OTHER_PAPERS = (
    (
        "citation_recall",
        "citation_recall",
        "autoais",
        "Citation recall",
        "Mean over answers of the share of claims that their evidence entails, as in ALCE: a claim without "
        "evidence is not entailed.",
    ),
    (
        "citation_precision",
        "citation_precision",
        "autoais",
        "Citation precision",
        "Mean over answers of the share of pieces of evidence that an entailed claim needs, or that entail it "
        "alone, as in ALCE.",
    ),
    (
        "response_ratio",
        "responds",
        "fact_score",
        "Response ratio",
        "Share of answers that have atomic facts and do not abstain, as in FActScore.",
    ),
    (
        "facts_per_answer",
        "facts_per_answer",
        "fact_score",
        "Facts per answer",
        "Mean number of atomic facts of the answers that respond, as in FActScore.",
    ),
)


def _of_other_papers() -> list[ScoreSpec]:
    specs = []
    for name, column, group, title, about in _OF_OTHER_PAPERS:
        spec = ScoreSpec(
            name,
            title,
            about,
            group,
            unit="answers",
            columns=(column,),
            partial=True,
            # The number of facts has no upper bound, so it is not a fraction.
            share=name != "facts_per_answer",
            official=False,
            main=False,
        )
        specs.append(spec)
    return specs


SCORES = (
    *_autoais(
        "",
        "AutoAIS",
        "Mean over answers of the share of counted claims that are entailed by their evidence.",
        "Share of all counted claims that are entailed by their evidence.",
    ),
    *_autoais(
        "_without_abstentions",
        "AutoAIS without abstaining answers",
        "Same as autoais_macro, without the answers that abstain.",
        "Same as autoais_micro, without the answers that abstain.",
    ),
    *_agreement("autoais_agreement", "AutoAIS", "the label is Y", "Complete"),
    *_agreement("fact_score_agreement", "fact score", "the fact score is at least 0.5", "Correct"),
    _ratio(
        "fact_score",
        "Fact score",
        "Mean over claims of the share of their atomic claims that a model finds true.",
        ("fact_score_sum", "claims_with_fact_score"),
        group="fact_score",
        graded=True,
        official=False,
    ),
    _ratio(
        "fact_score_readable",
        "Fact score of readable verdicts",
        "Same as fact_score, over the verdicts that say true or false. The authors count most others as true.",
        ("fact_score_readable_sum", "claims_with_fact_score_readable"),
        group="fact_score",
        graded=True,
        official=False,
    ),
    *map(_rouge, ("rouge1", "rouge2", "rougeL", "rougeLsum")),
    _ratio(
        "evidence",
        "Claims with evidence",
        "Share of claims that have evidence, whether or not it supports them.",
        ("claims_with_evidence", "claims"),
        group="autoais",
        official=False,
    ),
    ScoreSpec(
        "abstains",
        "Answers that abstain",
        "Share of answers that contain one of the authors' phrases of abstention, such as \"I don't know\".",
        "autoais",
        unit="answers",
        partial=True,
        higher_is_better=False,
        official=False,
        main=False,
    ),
    *_of_other_papers(),
)
