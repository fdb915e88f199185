"""The figures of a run with their intervals, over all records or over some: the same function for every view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qabench.evaluation import Evaluation, Record
from qabench.runs.corpus import expertqa, fastbook, felm, means
from qabench.stats import Interval

# Those of every other benchmark are means of the records' scores.
_CORPUS: dict[str, Callable[[Sequence[Record]], dict[str, Interval]]] = {
    "expertqa": expertqa,
    "fastbook": fastbook,
    "felm": felm,
}


def figures(run: Evaluation, records: Sequence[Record] | None = None) -> dict[str, Interval]:
    """Each figure of a run with its 95 % bootstrap interval over questions (epochs of a question go together).

    Args:
        run: as read from a log. records: some of its records, such as a category's; by default all.

    Returns:
        Figure -> interval, in the order of the benchmark's own report; nothing for no scored records. Records that
        could not be scored are not in the means; failed ones are where the official scorer counts them as 0. A figure
        that is undefined on these records, such as the recall of errors where there are none, is left out.
    """
    chosen = [record for record in (run.records if records is None else records) if record.scores]
    return _CORPUS.get(run.benchmark, means)(chosen)


def by_group(run: Evaluation, grouping: str) -> dict[str, list[Record]]:
    """The records of each group of a grouping (a record counts in each of its own), the largest group first."""
    groups: dict[str, list[Record]] = {}
    for record in run.records:
        for group in record.groups.get(grouping, ()):
            groups.setdefault(group, []).append(record)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def groupings(run: Evaluation) -> list[str]:
    """The groupings that the records of a run have."""
    return list(dict.fromkeys(name for record in run.records for name in record.groups))
