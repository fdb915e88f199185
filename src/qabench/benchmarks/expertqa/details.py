"""How reports show the details of ExpertQA's scoring."""

from __future__ import annotations

from qabench.evaluation.details import (
    Column,
    DetailForm,
    Hidden,
    Links,
    RankedPassages,
    Rows,
    Verdict,
)

DETAILS: tuple[DetailForm, ...] = (
    Rows(
        "Claims and their evidence",
        "claims",
        columns=(Column("Claim", "text"), Column("Evidence", "evidence")),
        verdict=Verdict(
            ("label",),
            cases=((("Y",), "right", "supported"), (("N",), "wrong", "not supported")),
            otherwise=("none", "no label"),
        ),
        verdict_title="Label",
        folded_without="evidence",
    ),
    RankedPassages("passages"),
    Links(
        "Web pages",
        "pages",
        names=("url",),
        notes=("outcome", "detail"),
        counted=("outcome", "read"),
    ),
    Hidden(("attribution",)),
)
