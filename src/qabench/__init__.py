"""qabench: FanOutQA, ExpertQA, FELM and fastbook-benchmark as Hugging Face datasets and metrics.

    import qabench
    dev = qabench.load_dataset("fanoutqa", "dev", split="validation")
    accuracy = qabench.load_metric("fanout_acc")
    evaluation = qabench.evaluate_predictions("fanoutqa", "dev", "answers.jsonl")
    print(evaluation["acc.loose"].value)

Submodules: ``benchmarks``, ``data``, ``evaluation``, ``llm``, ``retrieval``, ``stats``,
``text``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qabench.benchmarks import benchmark, benchmark_names
    from qabench.benchmarks.fanoutqa.normalizer import normalize
    from qabench.evaluation import Evaluation
    from qabench.loading_scripts.load import load_dataset
    from qabench.metrics import metric_names
    from qabench.metrics.load import load_metric
    from qabench.retrieval.bm25.attach import add_bm25_index
    from qabench.retrieval.bm25.index import BM25Index
    from qabench.runs.comparing import compare
    from qabench.runs.functions import run
    from qabench.runs.judges import judge
    from qabench.runs.predictions import evaluate_predictions

    __version__: str

# Imported on first use: datasets takes seconds, and ``qabench --help`` does not need it.
_MODULES = {
    "BM25Index": "qabench.retrieval.bm25.index",
    "Evaluation": "qabench.evaluation",
    "add_bm25_index": "qabench.retrieval.bm25.attach",
    "benchmark": "qabench.benchmarks",
    "benchmark_names": "qabench.benchmarks",
    "compare": "qabench.runs.comparing",
    "evaluate_predictions": "qabench.runs.predictions",
    "judge": "qabench.runs.judges",
    "load_dataset": "qabench.loading_scripts.load",
    "load_metric": "qabench.metrics.load",
    "metric_names": "qabench.metrics",
    "normalize": "qabench.benchmarks.fanoutqa.normalizer",
    "run": "qabench.runs.functions",
}
__all__ = [
    "BM25Index",
    "Evaluation",
    "__version__",
    "add_bm25_index",
    "benchmark",
    "benchmark_names",
    "compare",
    "evaluate_predictions",
    "judge",
    "load_dataset",
    "load_metric",
    "metric_names",
    "normalize",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "load_dataset":
        # The class of a benchmark from outside may declare where its rows are. Importing this
        # package registers the reader of such declarations.
        importlib.import_module("qabench.benchmarks")
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    if name == "__version__":
        from qabench.evaluation.signature import version

        return version()
    raise AttributeError(f"module 'qabench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
