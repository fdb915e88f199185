"""Rivers: which river flows through a city?"""

from __future__ import annotations

from qabench.benchmarks import Benchmark, Setting
from qabench.evaluation.metric import Metric

BENCHMARK = Benchmark(
    name="rivers",
    title="Rivers",
    settings=(Setting("closed-book", "rivers", "The question alone."),),
    part="continent",
    metrics=(Metric("match", "Match", "Share of answers that name the river.", "match", graded=True),),
    headline=("match",),
    families={"match": "whether the answer names the river"},
    default_families=("match",),
    groupings={"continent": "continent"},
    evaluate_with="qabench.benchmarks.rivers.predictions:evaluate",
    declarations="qabench.benchmarks.rivers.official:DECLARATIONS",
)
