"""A record as a prediction, for ``qabench export``."""

from __future__ import annotations

from typing import Any

from qabench.evaluation import Record


def prediction(record: Record) -> dict[str, Any]:
    """Return {"reply"}: the reply, or the list of sampled replies; with {"claims"} if claims were judged."""
    replies = list(record.detail.get("replies") or [record.answer])
    claims = {"claims": list(record.detail["claims"])} if record.detail.get("claims") else {}
    return {"reply": replies[0] if len(replies) == 1 else replies} | claims
