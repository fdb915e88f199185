"""Runs that other runs resumed: only the latest one counts."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.records import FAILED, MISSING


def without_superseded(
    evaluations: Sequence[Evaluation],
) -> tuple[list[Evaluation], list[Evaluation]]:
    """Split evaluations into those that count, and the runs that other runs resumed.

    Of the runs with the same ``Evaluation.origin``, the one with the most answers counts, the
    latest if there are several.
    """
    best = {}
    for evaluation in sorted(evaluations, key=_progress):
        # A run that resumed another one has the answers of that run and more.
        best[evaluation.origin] = evaluation
    current, superseded = [], []
    for evaluation in evaluations:
        if not evaluation.origin or best[evaluation.origin] is evaluation:
            current.append(evaluation)
        else:
            superseded.append(evaluation)
    return current, superseded


def _progress(evaluation: Evaluation) -> tuple[int, str]:
    answers = [record for record in evaluation.records if record.status not in (FAILED, MISSING)]
    return len(answers), evaluation.created
