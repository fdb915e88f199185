"""Results of metrics without the files that ``evaluate`` writes."""

from collections.abc import Sequence
from typing import Any

from qabench.adapters.declared import result_of
from qabench.data.answers import UNANSWERED
from qabench.metrics import metric_class


def metric_result(name: str, references: Sequence[Any], predictions: Sequence[Any], **options: Any) -> dict[str, Any]:
    """Return the result of a metric, also per question. A prediction that is None is unanswered."""
    answers = [UNANSWERED if prediction is None else prediction for prediction in predictions]
    return result_of(metric_class(name), name, answers, list(references), True, options)
