"""Evaluations: records of answers with their scores, and the metrics computed from them.

Generic over benchmarks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from qabench.evaluation.metric import Metric

if TYPE_CHECKING:
    from qabench.evaluation.evaluation import Evaluation
    from qabench.evaluation.records import (
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

# All but ``metric`` is imported on first use: ``qabench --help`` needs only the descriptors of
# benchmarks.
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
        module = "evaluation" if name == "Evaluation" else "records"
        return getattr(importlib.import_module(f"qabench.evaluation.{module}"), name)
    raise AttributeError(f"module 'qabench.evaluation' has no attribute {name!r}")
