"""A record as a prediction, for ``qabench export``."""

from __future__ import annotations

from typing import Any

from qabench.evaluation import Record


def prediction(record: Record) -> dict[str, Any]:
    """{"answer"}, and {"claims"} with their evidence and labels if there are any."""
    claims = [
        {"claim": claim["text"], "evidence": list(claim["evidence"]), "label": claim["label"]}
        for claim in record.detail.get("claims") or ()
    ]
    return {"answer": record.answer} | ({"claims": claims} if claims else {})
