"""Plots of evaluations and comparisons: values with their 95% intervals. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qabench.errors import MissingExtra, unknown_name
from qabench.evaluation.tables import title

if TYPE_CHECKING:
    from qabench.evaluation.comparison import Comparison
    from qabench.evaluation.evaluation import Evaluation
    from qabench.stats import Interval

BLUE, GRAY = "#0072B2", "#666666"  # of the colors of Okabe and Ito
INCHES_PER_ROW = 0.4


def plot_scores(evaluation: Evaluation, metrics: Sequence[str] | None, by: str | None, axes: Any) -> Any:
    """Plot scores; see ``Evaluation.plot``."""
    scores = evaluation.scores()
    names = list(metrics) if metrics else list(scores)
    if missing := [name for name in names if name not in scores]:
        raise unknown_name("unknown score", missing[0], scores)
    if by is None:
        return _intervals({scores[name].metric.title: scores[name].interval for name in names}, title(evaluation), axes)
    if by not in evaluation.groupings():
        raise unknown_name("unknown grouping", by, evaluation.groupings())
    groups = {}
    for group, group_scores in evaluation.scores_by_group(by).items():
        if score := group_scores.get(names[0]):
            groups[f"{group} ({score.n})"] = score.interval
    return _intervals(groups, f"{scores[names[0]].metric.title} by {by}: {title(evaluation)}", axes)


def plot_comparison(comparison: Comparison, axes: Any) -> Any:
    """Plot differences; see ``Comparison.plot``."""
    rows = {f"{pair.first} - {pair.second}": pair.difference.interval for pair in comparison.pairs}
    axes = _intervals(rows, f"{comparison.metric.title}: paired differences", axes)
    axes.axvline(0, color=GRAY, linewidth=1, linestyle="--")
    return axes


def _intervals(rows: dict[str, Interval], heading: str, axes: Any) -> Any:
    """Draw points with error bars, one row each, the first on top."""
    if axes is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise MissingExtra("plots need matplotlib: pip install 'qabench[plot]'") from None
        _, axes = pyplot.subplots(figsize=(7, 1 + INCHES_PER_ROW * len(rows)), layout="constrained")
    places = range(len(rows))
    values = [interval.mean for interval in rows.values()]
    below = [max(0.0, interval.mean - interval.low) for interval in rows.values()]
    above = [max(0.0, interval.high - interval.mean) for interval in rows.values()]
    axes.errorbar(values, places, xerr=[below, above], fmt="o", color=BLUE, capsize=3)
    axes.set_yticks(places, labels=list(rows))
    axes.invert_yaxis()
    axes.set_xlabel("value with 95% interval")
    axes.set_title(heading, loc="left", fontsize="medium")
    axes.grid(axis="x", alpha=0.3)
    return axes
