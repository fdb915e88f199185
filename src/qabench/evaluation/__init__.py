"""Evaluations: records of answers with their scores, and the metrics computed from them. Generic over benchmarks."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qabench.evaluation.evaluation import Evaluation
    from qabench.evaluation.metric import Metric
    from qabench.evaluation.record import (
        ANSWERED,
        CUT_OFF,
        EMPTY,
        FAILED,
        MISSING,
        REFUSED,
        STATUSES,
        ExtraSection,
        Message,
        Record,
        SectionRow,
    )

# Imported on first use: descriptors of benchmarks need only ``metric``, and ``qabench --help`` only descriptors.
_MODULES = {
    "Evaluation": "evaluation",
    "Metric": "metric",
}
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
        return getattr(importlib.import_module(f"qabench.evaluation.{_MODULES.get(name, 'record')}"), name)
    raise AttributeError(f"module 'qabench.evaluation' has no attribute {name!r}")
