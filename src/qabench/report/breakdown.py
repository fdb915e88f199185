"""The scores by group of questions, such as by domain, as rows of plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from qabench.data.rows import natural_key
from qabench.evaluation import Evaluation
from qabench.evaluation.records import Score

Row = dict[str, Any]
# Only the largest groups are shown.
MOST_GROUPS = 15


def breakdown(runs: Mapping[str, Evaluation], grouping: str, title: str) -> Row | None:
    """Return the scores of the largest groups by run. None if there are too few groups, or no scores.

    Returns:
        "key" (the grouping), "title", "groups" (the names of the groups that are shown) and "rows",
        one per run, group and score.
    """
    sizes: Counter[str] = Counter()
    for run in runs.values():
        groups = run.by_group(grouping) if run.answered else {}
        sizes.update({name: len(records) for name, records in groups.items()})
    if len(sizes) < 2:
        return None
    largest = sorted(sizes, key=lambda name: (-sizes[name], natural_key(name)))[:MOST_GROUPS]
    names = sorted(largest, key=natural_key)
    if len(sizes) > MOST_GROUPS:
        title += f" (the {MOST_GROUPS} largest of {len(sizes)} groups)"
    rows: list[Row] = []
    for label, run in runs.items():
        scores_by_group = run.scores_by_group(grouping)
        for name in names:
            place = {"run": label, "grouping": grouping, "group": name}
            scores = scores_by_group.get(name, {})
            rows += [place | score_row(score) for score in scores.values()]
    if not rows:
        return None
    return {"key": grouping, "title": title, "groups": names, "rows": rows}


def undefined_row(metric: str) -> Row:
    """Return the row of a score that is undefined, with the keys of ``score_row``."""
    keys = ("mean", "low", "high", "standard_error", "undefined", "n", "unit", "left_out")
    return {"metric": metric, **dict.fromkeys(keys)}


def score_row(score: Score) -> Row:
    """Return a score as a row of plain data."""
    interval = score.interval
    return {
        "metric": score.spec.name,
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "standard_error": interval.standard_error,
        "undefined": interval.undefined,
        "n": score.n,
        "unit": score.spec.unit,
        "left_out": score.left_out,
    }
