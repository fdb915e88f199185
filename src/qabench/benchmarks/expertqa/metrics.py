"""ExpertQA's metrics: shares of claims, and means over answers."""

from __future__ import annotations

from typing import Any

from qabench.evaluation.metric import Metric


def _share(part: Any, whole: Any) -> Any:
    return part / whole


def _whole(part: float, whole: float) -> float:
    return whole


METRICS = (
    Metric(
        "evidence",
        "Claims with evidence",
        "Share of claims that cite evidence.",
        "autoais",
        unit="claims",
        columns=("claims_with_evidence", "claims"),
        function=_share,
        size=_whole,
        item=_share,
        official=False,
    ),
    Metric(
        "autoais_macro",
        "AutoAIS (mean over answers)",
        "Mean over answers of the share of claims that their cited evidence entails.",
        "autoais",
        unit="answers",
        columns=("autoais",),
        graded=True,
    ),
    Metric(
        "autoais_micro",
        "AutoAIS (over all claims)",
        "Share of all claims that their cited evidence entails.",
        "autoais",
        unit="claims",
        columns=("claims_supported", "claims_labelled"),
        function=_share,
        size=_whole,
        item=_share,
    ),
    *(
        Metric(f"{kind}", title, f"F-measure of {title} between answer and reference.", "rouge", unit="answers")
        for kind, title in (
            ("rouge1", "ROUGE-1"),
            ("rouge2", "ROUGE-2"),
            ("rougeL", "ROUGE-L"),
            ("rougeLsum", "ROUGE-Lsum"),
        )
    ),
)
