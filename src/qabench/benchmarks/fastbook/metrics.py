"""The counts in results of fastbook-benchmark's metrics."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.benchmarks.fastbook import answer_components
from qabench.data.rows import Json
from qabench.evaluation.scoring import Outcome

OPTIONS = {name: name for name in ("k", *answer_components.OPTIONS)}


def counts(outcomes: Sequence[Outcome]) -> Json:
    """Return the number of questions whose components are all left out by the options."""
    return {"skipped": sum(not outcome.scores for outcome in outcomes)}
