"""A record as a prediction, for ``qabench export``."""

from __future__ import annotations

from typing import Any

from qabench.evaluation import Record


def prediction(record: Record) -> dict[str, Any]:
    """{"answer", "passages"}: the model's answer, and the texts of the retrieved passages, best first."""
    passages = [passage["text"] for passage in record.detail.get("passages") or ()]
    return {"answer": record.answer} | ({"passages": passages} if passages else {})
