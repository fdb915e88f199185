"""How reports show the details of FanOutQA's scoring."""

from __future__ import annotations

from qabench.evaluation.details import DetailForm, Hidden, Links, Strings, Text

DETAILS: tuple[DetailForm, ...] = (
    Strings("found", "missing"),
    Links(
        "Evidence pages",
        "evidence_read",
        names=("title", "url", "pageid"),
        missing="evidence_missing",
    ),
    Text("Judge", "judge", problem="judge_problem"),
    Hidden(("verdict",)),
)
