"""Rivers: which river flows through a city?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Setting
from qabench.evaluation.metric import Metric

if TYPE_CHECKING:
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation
    from qabench.evaluation.official import Declaration


class Rivers(Benchmark):
    """Questions about rivers, with one-word answers."""

    name = "rivers"
    title = "Rivers"
    settings = (Setting("closed-book", "rivers", "The question alone."),)
    part = "continent"
    metrics = (Metric("match", "Match", "Share of answers that name the river.", "match", graded=True),)
    headline = ("match",)
    families = {"match": "whether the answer names the river"}
    default_families = ("match",)
    groupings = {"continent": "continent"}

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        from qabench.benchmarks.rivers.official import DECLARATIONS

        return DECLARATIONS

    def evaluate(self, config: str | None, predictions: Predictions, **options: Any) -> Evaluation:
        """Score predictions on the questions of a config."""
        from qabench.benchmarks.rivers.predictions import evaluate

        return evaluate(self, config, predictions, **options)


BENCHMARK = Rivers()
