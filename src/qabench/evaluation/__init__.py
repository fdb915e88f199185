"""Evaluations: records of answers with their scores, and the metrics computed from them. Generic over benchmarks."""

from __future__ import annotations

from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.metric import Metric
from qabench.evaluation.record import ANSWERED, CUT_OFF, EMPTY, FAILED, REFUSED, STATUSES, Message, Record
from qabench.evaluation.section import ExtraSection, SectionRow

__all__ = [
    "ANSWERED",
    "CUT_OFF",
    "EMPTY",
    "FAILED",
    "REFUSED",
    "STATUSES",
    "Evaluation",
    "ExtraSection",
    "Message",
    "Metric",
    "Record",
    "SectionRow",
]
