"""``qabench.load_metric``: metrics by name, without network access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qabench.errors import unknown_name
from qabench.loading_scripts.load import cache_errors
from qabench.metrics import metric_folder, metric_names

if TYPE_CHECKING:
    from evaluate import EvaluationModule


def load_metric(name: str, **kwargs: Any) -> EvaluationModule:
    """Load a metric as an ``evaluate`` module, without network access.

    The metrics are those of this package, and those of benchmarks from outside.

    Args:
        name: the metric, "fanout_acc" or "qabench/fanout_acc".
        **kwargs: passed to ``evaluate.load``, such as ``keep_in_memory``.

    Raises:
        InputError: the metric is unknown.
        QabenchError: HF_HOME or ``cache_dir`` cannot be written.
    """
    import evaluate

    metric = name.removeprefix("qabench/")
    if metric not in metric_names():
        raise unknown_name("unknown metric", name, metric_names())
    with cache_errors(kwargs.get("cache_dir")):
        # ``evaluate`` does not ask the Hub if it gets a path instead of a name.
        return evaluate.load(str(metric_folder(metric)), **kwargs)
