"""The figures of a run with their intervals, over all records or over some: the same function for every view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from qabench.runs.run import Record, Run
from qabench.stats import Interval, bootstrap, bootstrap_mean

# Corpus-level scores are functions of summed counts; those of every other figure are means of the records' scores.
_CORPUS: dict[str, Callable[[Sequence[Record]], dict[str, Interval]]] = {}


def figures(run: Run, records: Sequence[Record] | None = None) -> dict[str, Interval]:
    """Each figure of a run with its 95 % bootstrap interval over questions (epochs of a question go together).

    Args:
        run: as read from a log. records: some of its records, such as a category's; by default all.

    Returns:
        Figure -> interval, in the order of the benchmark's own report; nothing for no scored records. Records that
        could not be scored are not in the means; failed ones are where the official scorer counts them as 0.
    """
    chosen = [record for record in (run.records if records is None else records) if record.scores]
    if not chosen:
        return {}
    if run.benchmark in _CORPUS:
        return _CORPUS[run.benchmark](chosen)
    clusters = [record.id for record in chosen]
    names = dict.fromkeys(name for record in chosen for name in record.scores)
    result = {}
    for name in names:
        having = [i for i, record in enumerate(chosen) if name in record.scores]
        values = [chosen[i].scores[name] for i in having]
        result[name] = bootstrap_mean(values, clusters=[clusters[i] for i in having])
    return result


def by_group(run: Run, grouping: str) -> dict[str, list[Record]]:
    """The records of each group of a grouping (a record counts in each of its own), the largest group first."""
    groups: dict[str, list[Record]] = {}
    for record in run.records:
        for group in record.groups.get(grouping, ()):
            groups.setdefault(group, []).append(record)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def groupings(run: Run) -> list[str]:
    """The groupings that the records of a run have."""
    return list(dict.fromkeys(name for record in run.records for name in record.groups))


def _felm(records: Sequence[Record]) -> dict[str, Interval]:
    # Segments' counts are summed over responses: F1 and balanced accuracy are functions of the sums.
    counts = [[record.scores[name] for name in ("tp", "tn", "fp", "fn")] for record in records]
    clusters = [record.id for record in records]
    functions: dict[str, Any] = {
        "f1": lambda tp, tn, fp, fn: 2 * tn / (2 * tn + fn + fp),
        "precision": lambda tp, tn, fp, fn: tn / (tn + fn),
        "recall": lambda tp, tn, fp, fn: tn / (tn + fp),
        "balanced_accuracy": lambda tp, tn, fp, fn: (tp / (tp + fn) + tn / (tn + fp)) / 2,
    }
    return {name: bootstrap(counts, function, clusters=clusters) for name, function in functions.items()}


_CORPUS["felm"] = _felm
