"""How reports show the details of fastbook's scoring."""

from __future__ import annotations

from qabench.evaluation.details import Column, DetailForm, Hidden, RankedPassages, Rows, Verdict

DETAILS: tuple[DetailForm, ...] = (
    Rows(
        "Components of the answer",
        "components",
        columns=(Column("Component", "text"),),
        verdict=Verdict(
            ("rank",),
            cases=(((None,), "wrong", "not in the first {k}"),),
            otherwise=("right", "rank {rank}"),
        ),
        verdict_title="Retrieved",
    ),
    RankedPassages("passages", hits="components", unit="component"),
    Hidden(("k",)),
)
