"""Evaluations: records of answers with their numbers, and the scores computed from them.

Generic over benchmarks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from qabench.evaluation.score_spec import ScoreSpec

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

# All but ``score_spec`` is imported on first use: ``qabench --help`` needs only the descriptors of
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
    "Record",
    "ScoreSpec",
    "SectionRow",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = "evaluation" if name == "Evaluation" else "records"
        return getattr(importlib.import_module(f"qabench.evaluation.{module}"), name)
    raise AttributeError(f"module 'qabench.evaluation' has no attribute {name!r}")
