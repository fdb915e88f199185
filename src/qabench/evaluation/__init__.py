"""Evaluations: records of answers with their scores, and the metrics computed from them. Generic over benchmarks."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qabench.evaluation.evaluation import (
        ANSWERED,
        CUT_OFF,
        EMPTY,
        FAILED,
        MISSING,
        REFUSED,
        STATUSES,
        Evaluation,
        ExtraSection,
        Message,
        Record,
        SectionRow,
    )
    from qabench.evaluation.metric import Metric

# Imported on first use: descriptors of benchmarks need only ``metric``, and ``qabench --help`` only descriptors.
__all__ = [
    "ANSWERED",
    "CUT_OFF",
    "EMPTY",
    "FAILED",
    "MISSING",
    "REFUSED",
    "STATUSES",
    "Evaluation",
    "ExtraSection",
    "Message",
    "Metric",
    "Record",
    "SectionRow",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = "metric" if name == "Metric" else "evaluation"
        return getattr(importlib.import_module(f"qabench.evaluation.{module}"), name)
    raise AttributeError(f"module 'qabench.evaluation' has no attribute {name!r}")
