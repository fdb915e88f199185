"""How reports show the details of FELM's scoring."""

from __future__ import annotations

from qabench.evaluation.details import Column, DetailForm, Rows, Texts, Verdict

DETAILS: tuple[DetailForm, ...] = (
    Rows(
        "Segments",
        "segments",
        columns=(
            Column("Segment", "text", note="comment"),
            Column("Label", "label", labels=((True, "factual"), (False, "error")), note="type"),
            Column("Verdict", "verdict", labels=((True, "factual"), (False, "error"))),
        ),
        verdict=Verdict(
            ("label", "verdict"),
            cases=(
                ((True, True), "right", "agrees"),
                ((False, False), "right", "error found"),
                ((True, False), "wrong", "false alarm"),
                ((False, True), "wrong", "error missed"),
            ),
            otherwise=("none", "no verdict"),
        ),
        numbered=True,
        warnings="reasons",
    ),
    Texts("Claims", "claims", key="text", number="segment"),
    Texts("Replies", "replies", fewest=2),
)
