"""A record as a prediction, for ``qabench export``."""

from __future__ import annotations

from typing import Any

from qabench.evaluation import Record


def prediction(record: Record) -> dict[str, Any]:
    """{"reply"}: the reply, or the list of sampled replies; {"labels"} if claims were judged."""
    replies = list(record.detail.get("replies") or [record.answer])
    if record.detail.get("claims"):
        return {"labels": [segment["verdict"] is not False for segment in record.detail["segments"]]}
    return {"reply": replies[0] if len(replies) == 1 else replies}
