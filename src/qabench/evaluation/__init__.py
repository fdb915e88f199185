"""Evaluations: records of answers with their numbers, and the scores computed from them.

Nothing in this package depends on a particular benchmark.
"""

from __future__ import annotations

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
from qabench.evaluation.score_spec import ScoreSpec

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
