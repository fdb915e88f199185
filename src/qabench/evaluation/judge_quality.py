"""How good a judge is: its verdicts against human labels, overall and by group.

A verdict of 1/2 or more says yes, and so does a label. Sensitivity is the share of the items
labeled yes on which the judge says yes. Specificity is the share of the items labeled no on which
the judge says no. Intervals are over questions, because items of one question are not independent.

Source of kappa: Cohen, A Coefficient of Agreement for Nominal Scales, 1960.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, combinations
from typing import Any

import numpy as np

from qabench.data.rows import Json, grouped
from qabench.errors import InputError, unknown_name
from qabench.evaluation.judged import JudgedItem, JudgedScore
from qabench.evaluation.number_form import p_text
from qabench.io.tables import Table
from qabench.stats import Difference, Interval, adjust, paired_test, score_interval

LENGTH = "length"
# Judges may prefer long answers, so a judge's quality is also shown by quarters of the answers' length.
LENGTH_GROUPS = 4
# A grouping with more groups, such as the type of question, is shown only if it is named.
MAX_GROUPS = 8


def sensitivity(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    """Return the share of the items labeled yes on which the judge says yes."""
    return tp / (tp + fn)


def specificity(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    """Return the share of the items labeled no on which the judge says no."""
    return tn / (tn + fp)


def balanced_accuracy(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    """Return the mean of sensitivity and specificity: 1/2 for a judge that guesses."""
    return (tp / (tp + fn) + tn / (tn + fp)) / 2


def agreement(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    """Return the share of the items on which judge and people agree."""
    return (tp + tn) / (tp + fn + fp + tn)


def kappa(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    """Return the agreement beyond chance: 0 for a judge that guesses, 1 for a perfect one."""
    n = tp + fn + fp + tn
    observed = (tp + tn) / n
    # How often judge and people would agree if both said yes as often as they do, but at random.
    expected = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / n**2
    return (observed - expected) / (1 - expected)


MEASURES = {
    "sensitivity": sensitivity,
    "specificity": specificity,
    "balanced_accuracy": balanced_accuracy,
    "agreement": agreement,
    "kappa": kappa,
}


@dataclass(frozen=True, slots=True)
class Quality:
    """How well one judge's verdicts on one score agree with people.

    Attributes:
        judge: the label of the judge.
        score: what was judged.
        items: the items with a verdict and a label.
        measures: name -> value with its interval, without measures that are undefined.
        counts: "tp", "fn", "fp" and "tn", and the numbers of items whose verdict is "unreadable"
            and of items "without_verdict".
        groups: grouping -> group -> the quality on the items of the group.
    """

    judge: str
    score: JudgedScore
    items: Sequence[JudgedItem]
    measures: Mapping[str, Interval]
    counts: Mapping[str, int]
    groups: Mapping[str, Mapping[str, Quality]] = field(default_factory=dict)

    def as_dict(self) -> Json:
        """Return the quality as JSON data."""
        question_ids = {item.question_id for item in self.items}
        measures = {name: asdict(interval) for name, interval in self.measures.items()}
        by_grouping: dict[str, dict[str, Json]] = {}
        for grouping, groups in self.groups.items():
            by_grouping[grouping] = {}
            for name, of_group in groups.items():
                by_grouping[grouping][name] = of_group.as_dict()
        return {
            "judge": self.judge,
            "score": self.score.name,
            "positive": self.score.positive,
            "n": len(self.items),
            "unit": self.score.unit,
            "questions": len(question_ids),
            "counts": dict(self.counts),
            "measures": measures,
            "by": by_grouping,
        }


def quality(judge: str, score: JudgedScore, with_groups: bool = True) -> Quality:
    """Return the quality of a judge on one score.

    Raises:
        InputError: no item has a verdict and a label.
    """
    items = []
    without_verdict = unreadable = 0
    for item in score.items:
        if item.label is None:
            continue
        if not item.answered:
            without_verdict += 1
            continue
        items.append(item)
        # An unreadable reply has the verdict that the official scorer gives it.
        if not item.readable:
            unreadable += 1
    if not items:
        raise InputError(f"{judge}: no item of {score.name} has a verdict and a label of people")
    # All measures are functions of the four counts, so they share these rows.
    rows = _rows(items)
    clusters = [item.independent_unit for item in items]
    measures = {}
    for name, function in MEASURES.items():
        try:
            measures[name] = score_interval(rows, function, clusters=clusters)
        except InputError:
            # Some measures are undefined if all items have the same label.
            continue
    tp, fn, fp, tn = map(int, rows.sum(axis=0))
    counts = {"tp": tp, "fn": fn, "fp": fp, "tn": tn}
    counts["unreadable"] = unreadable
    counts["without_verdict"] = without_verdict
    groups = {}
    if with_groups:
        groups = _groups(judge, score, items)
    return Quality(judge, score, items, measures, counts, groups)


def _rows(items: Sequence[JudgedItem]) -> Any:
    """Return tp, fn, fp and tn of each item, one of which is 1: an array (items, 4)."""
    verdicts, labels = [], []
    for item in items:
        verdicts.append(item.verdict)
        labels.append(item.label or 0)
    says_yes = np.array(verdicts) >= 0.5
    is_yes = np.array(labels) >= 0.5
    # The columns are in the order of the arguments of all measures.
    columns = (says_yes & is_yes, ~says_yes & is_yes, says_yes & ~is_yes, ~says_yes & ~is_yes)
    return np.column_stack(columns).astype(np.float64)


def _groups(
    judge: str, score: JudgedScore, items: Sequence[JudgedItem]
) -> dict[str, dict[str, Quality]]:
    """Return the quality by grouping and group: quarters of length, and the items' groupings."""
    members: dict[str, dict[str, list[JudgedItem]]] = {}
    for item in items:
        for grouping, names in item.groups.items():
            by_name = members.setdefault(grouping, {})
            for name in names:
                by_name.setdefault(name, []).append(item)
    for grouping, by_name in members.items():
        # The largest group is first.
        members[grouping] = dict(sorted(by_name.items(), key=lambda group: -len(group[1])))
    qualities: dict[str, dict[str, Quality]] = {}
    for grouping, by_name in ({LENGTH: _by_length(items)} | members).items():
        if len(by_name) < 2:
            # A single group would have the same quality as all items.
            continue
        qualities[grouping] = {}
        for name, in_group in by_name.items():
            of_group = replace(score, items=in_group)
            qualities[grouping][name] = quality(judge, of_group, with_groups=False)
    return qualities


def _by_length(items: Sequence[JudgedItem]) -> dict[str, list[JudgedItem]]:
    """Return the items by the length of the whole answer, in quarters."""
    lengths = np.array([item.length for item in items])
    # If many answers have the same length, some quantiles are equal, so there are fewer groups.
    bounds = np.unique(np.quantile(lengths, np.linspace(0, 1, LENGTH_GROUPS + 1)[1:-1]))
    positions = np.searchsorted(bounds, lengths, side="left")
    by_position = grouped(zip(positions.tolist(), items, strict=True))
    groups: dict[str, list[JudgedItem]] = {}
    for _, in_group in sorted(by_position.items()):
        in_group_lengths = [item.length for item in in_group]
        shortest, longest = min(in_group_lengths), max(in_group_lengths)
        groups[f"{shortest:,} to {longest:,} characters"] = in_group
    return groups


@dataclass(frozen=True, slots=True)
class JudgePair:
    """Two judges on the same items: the difference of their balanced accuracies."""

    first: str
    second: str
    score: str
    n: int
    difference: Difference
    corrected_p: float

    def as_dict(self) -> Json:
        """Return the pair as JSON data."""
        interval = self.difference.interval
        return {
            "first": self.first,
            "second": self.second,
            "score": self.score,
            "measure": "balanced_accuracy",
            "n": self.n,
            "difference": interval.mean,
            "low": interval.low,
            "high": interval.high,
            "p": self.difference.p_value,
            "corrected_p": self.corrected_p,
        }


def judge_pairs(qualities: Sequence[Quality], **testing: Any) -> list[JudgePair]:
    """Test each pair of judges on their common items, with Holm's correction over all pairs."""
    pairs = []
    for first, second in combinations(qualities, 2):
        if first.score.name != second.score.name:
            continue
        second_by_id = {item.id: item for item in second.items}
        first_items, second_items, clusters = [], [], []
        for item in first.items:
            if item.id in second_by_id:
                first_items.append(item)
                second_items.append(second_by_id[item.id])
                # Items of one question are not independent, so they are swapped together.
                clusters.append(item.independent_unit)
        if not first_items:
            continue
        try:
            difference = paired_test(
                _rows(first_items),
                _rows(second_items),
                function=balanced_accuracy,
                clusters=clusters,
                **testing,
            )
        except InputError:
            # The difference is undefined if all common items have the same label.
            continue
        n = len(first_items)
        pairs.append(JudgePair(first.judge, second.judge, first.score.name, n, difference, 1.0))
    # The correction depends on the number of pairs, which is known only now.
    corrected = adjust([pair.difference.p_value for pair in pairs])
    return [replace(pair, corrected_p=p) for pair, p in zip(pairs, corrected, strict=True)]


def quality_table(qualities: Sequence[Quality]) -> Table:
    """Return a table with one row per score, measure and judge."""
    rows: list[list[Any]] = []
    scores = {quality.score.name: quality.score for quality in qualities}
    for name in scores:
        for measure in MEASURES:
            for quality in qualities:
                if quality.score.name == name:
                    rows.append([name, measure, quality.judge, *_cells(quality, measure)])
    notes = []
    for quality in qualities:
        counts = []
        for reason in ("unreadable", "without_verdict"):
            if count := quality.counts[reason]:
                counts.append(f"{count:,} {reason.replace('_', ' ')}")
        if counts:
            notes.append(f"{quality.judge}, {quality.score.name}: {', '.join(counts)}")
    for score in scores.values():
        notes.append(
            f"{score.name}: {score.title}. sensitivity: how often the judge agrees if people say {score.positive}; "
            f"specificity: how often it agrees if people say not {score.positive}"
        )
    columns = ["score", "measure", "judge", "value", "95% interval", "n"]
    return Table("How good the judge is", columns, rows, notes)


def _cells(quality: Quality, measure: str) -> list[Any]:
    size = f"{len(quality.items):,} {quality.score.unit}"
    interval = quality.measures.get(measure)
    if interval is None:
        return ["undefined", "", size]
    return [f"{interval.mean:.4f}", interval.bounds(), size]


def group_tables(qualities: Sequence[Quality], named: Sequence[str] = ()) -> list[Table]:
    """Return tables of sensitivity and specificity by group.

    Args:
        qualities: the qualities.
        named: the groupings to show. By default, all with at most ``MAX_GROUPS`` groups.

    Raises:
        InputError: no item has a group of a named grouping.
    """
    groupings = list(dict.fromkeys(chain.from_iterable(quality.groups for quality in qualities)))
    for name in named:
        if name not in groupings:
            raise unknown_name("what was judged has no grouping", name, groupings)
    tables = []
    # A named grouping is shown with all of its groups. Otherwise, only short tables are shown.
    for grouping in named or groupings:
        rows: list[list[Any]] = []
        groups: set[str] = set()
        for quality in qualities:
            for group, of_group in quality.groups.get(grouping, {}).items():
                groups.add(group)
                cells = [quality.score.name, group, quality.judge, len(of_group.items)]
                for measure in ("sensitivity", "specificity"):
                    value, bounds, _ = _cells(of_group, measure)
                    cells += [value, bounds]
                rows.append(cells)
        if rows and (named or len(groups) <= MAX_GROUPS):
            columns = ["score", grouping, "judge", "n", "sensitivity", "95%", "specificity", "95%"]
            tables.append(Table(f"By {grouping}", columns, rows))
    return tables


def pair_tables(pairs: Sequence[JudgePair]) -> list[Table]:
    """Return the table of compared judges, or [] if there are no pairs."""
    if not pairs:
        return []
    rows: list[list[Any]] = []
    for pair in pairs:
        interval = pair.difference.interval
        rows.append(
            [
                f"{pair.first} - {pair.second}",
                pair.score,
                f"{interval.mean:+.4f}",
                interval.bounds("+.4f"),
                pair.n,
                p_text(pair.difference.p_value),
                p_text(pair.corrected_p),
            ]
        )
    columns = ["pair", "score", "balanced accuracy", "95% interval", "n", "p", "corrected p"]
    note = "p: paired randomization test over questions, two-sided, corrected over all pairs (holm)"
    return [Table("Judges compared", columns, rows, [note])]
