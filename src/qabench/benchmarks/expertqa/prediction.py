"""A record as a prediction, for ``qabench export``."""

from __future__ import annotations

from typing import Any

from qabench.evaluation import Record


def prediction(record: Record) -> dict[str, Any]:
    """{"answer"}; if there are any, {"claims"} with evidence and labels, and the {"attribution"} that marks cite."""
    claims = [
        {"claim": claim["text"], "evidence": list(claim["evidence"]), "label": claim["label"]}
        for claim in record.detail.get("claims") or ()
    ]
    found: dict[str, Any] = {"answer": record.answer}
    if claims:
        found["claims"] = claims
    if record.detail.get("attribution"):
        found["attribution"] = list(record.detail["attribution"])
    return found
