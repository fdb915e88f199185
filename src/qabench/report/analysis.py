"""The numbers of a section: scores, comparisons, groups and outcomes, as data for the page and for report.json."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks.published import ranks
from qabench.evaluation import EMPTY, FAILED, MISSING, REFUSED, Evaluation, ExtraSection, Metric, Record
from qabench.evaluation.comparison import Comparison, compare
from qabench.evaluation.evaluation import Score, item_score, scores_of
from qabench.report.sections import Section

Row = dict[str, Any]
SMALL = 10  # smaller groups are binned
MOST_GROUPS = 15  # groups of a grouping; the smallest others are binned

# The outcome of each answer: right, partly right or wrong if the metric is graded, or why there is no score.
RIGHT, PARTLY, WRONG, SCORED, UNSCORED = "right", "partly", "wrong", "scored", "unscored"
OUTCOMES = {
    RIGHT: "right",
    PARTLY: "partly right",
    WRONG: "wrong",
    SCORED: "scored",
    EMPTY: "empty",
    REFUSED: "refused",
    FAILED: "failed",
    UNSCORED: "no score",
    MISSING: "missing",
}
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Group:
    """One group of a grouping, or the bin of its small groups.

    Attributes:
        name: such as "History"; for a bin, the number of its groups.
        questions: the number of questions in the group, over all runs.
        members: the names of the groups that are binned here; () for a group.
    """

    name: str
    questions: int
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Scores by the groups of one grouping.

    Attributes:
        grouping: its key, such as "category".
        title: such as "type of answer".
        groups: in the order of display.
        scores: run -> group's name -> metric's name -> score.
    """

    grouping: str
    title: str
    groups: Sequence[Group]
    scores: Mapping[str, Mapping[str, Mapping[str, Score]]]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The numbers of a section.

    Attributes:
        scores: run -> metric's name -> score.
        comparisons: metric's name -> its comparison; {} for a single run.
        breakdowns: one per grouping with at least two groups.
        extra: the benchmark's additional sections.
        outcomes: run -> outcome -> number of answers; only outcomes that occur.
        deviations: run -> metric's name -> sentences; see ``qabench.evaluation.official``.
        ranks: run -> metric's name -> its rank among published scores; see ``qabench.benchmarks.published``.
    """

    scores: Mapping[str, Mapping[str, Score]]
    comparisons: Mapping[str, Comparison]
    breakdowns: Sequence[Breakdown]
    extra: Sequence[ExtraSection]
    outcomes: Mapping[str, Mapping[str, int]]
    deviations: Mapping[str, Mapping[str, Sequence[str]]]
    ranks: Mapping[str, Mapping[str, str]]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as rows of plain data."""
        return {
            "scores": [
                {"run": run, **score_row(score)} for run, scores in self.scores.items() for score in scores.values()
            ],
            "comparisons": [comparison.as_dict() for comparison in self.comparisons.values()],
            "groups": [
                {"run": run, "grouping": breakdown.grouping, "group": group, **score_row(score)}
                for breakdown in self.breakdowns
                for run, groups in breakdown.scores.items()
                for group, scores in groups.items()
                for score in scores.values()
            ],
            "sections": [extra_dict(extra) for extra in self.extra],
            "outcomes": [
                {"run": run, "outcome": name, "n": n}
                for run, counts in self.outcomes.items()
                for name, n in counts.items()
            ],
        }


def analyze(section: Section) -> Analysis:
    """Return all numbers of a section. Takes some hundredths of a second per run, metric and group."""
    scores = {label: run.scores() for label, run in section.runs.items()}
    extra = [part for part in section.benchmark.report_sections(section.runs) if part.rows]
    replaced = {part.replaces for part in extra}
    return Analysis(
        scores=scores,
        comparisons=_comparisons(section, scores),
        breakdowns=[
            breakdown for name in section.groupings if name not in replaced and (breakdown := _breakdown(section, name))
        ],
        extra=extra,
        outcomes=_outcomes(section),
        deviations={
            label: {name: section.runs[label].deviations(score) for name, score in by_name.items()}
            for label, by_name in scores.items()
        },
        ranks={label: ranks(section.runs[label], by_name) for label, by_name in scores.items()},
    )


def score_row(score: Score) -> Row:
    """Return a score as plain data."""
    return {
        "metric": score.metric.name,
        **{name: getattr(score.interval, name) for name in ("mean", "low", "high", "standard_error", "undefined")},
        "n": score.n,
        "unit": score.metric.unit,
        "left_out": score.left_out,
    }


def extra_dict(extra: ExtraSection) -> Row:
    """Return a benchmark's additional section as plain data."""
    rows = [
        {
            "run": row.system,
            "score": row.score,
            "at": row.at,
            "mean": row.interval.mean,
            "low": row.interval.low,
            "high": row.interval.high,
            "n": row.n,
        }
        for row in extra.rows
    ]
    names = ("title", "kind", "unit", "note", "axis")
    return {name: getattr(extra, name) for name in names} | {"rows": rows}


def _comparisons(section: Section, scores: Mapping[str, Mapping[str, Score]]) -> dict[str, Comparison]:
    scored = {label: run for label, run in section.runs.items() if scores[label]}
    if len(scored) < 2:
        return {}
    comparisons = {metric.name: compare(scored, metric) for metric in section.metrics}
    return {name: comparison for name, comparison in comparisons.items() if comparison.pairs}


def _outcomes(section: Section) -> dict[str, dict[str, int]]:
    headline = section.headline
    counts_by_run = {}
    for label, run in section.runs.items():
        names = [outcome(headline, record) for record in run.records]
        counts = {name: names.count(name) for name in OUTCOMES}
        counts[MISSING] += max(0, run.expected - len(names))
        counts_by_run[label] = {name: n for name, n in counts.items() if n}
    return counts_by_run


def _breakdown(section: Section, grouping: str) -> Breakdown | None:
    by_run = {label: run.by_group(grouping) for label, run in section.runs.items() if run.answered}
    groups = _groups(by_run)
    if len(groups) < 2 or not section.metrics:
        return None
    scores: dict[str, dict[str, dict[str, Score]]] = {}
    for label, records_by_group in by_run.items():
        scores[label] = {}
        for group in groups:
            names = group.members or (group.name,)
            records = {id(record): record for name in names for record in records_by_group.get(name, ())}
            scores[label][group.name] = scores_of(section.metrics, list(records.values()))
    return Breakdown(grouping, section.grouping_title(grouping), groups, scores)


def _groups(by_run: Mapping[str, Mapping[str, Sequence[Record]]]) -> list[Group]:
    """Return the groups by the numbers in their names if all have one, else the largest first; the bin is last."""
    ids: dict[str, set[str]] = {}
    for records_by_group in by_run.values():
        for name, records in records_by_group.items():
            ids.setdefault(name, set()).update(record.id for record in records)
    largest = sorted(ids, key=lambda name: (-len(ids[name]), name))
    small = [name for place, name in enumerate(largest) if len(ids[name]) < SMALL or place >= MOST_GROUPS]
    if len(small) < 2 or len(small) == len(largest):
        small = largest[MOST_GROUPS:]
    groups = [Group(name, len(ids[name])) for name in _natural([name for name in largest if name not in small])]
    if small:
        binned = set[str]().union(*(ids[name] for name in small))
        groups.append(Group(f"{len(small)} smaller groups", len(binned), tuple(small)))
    return groups


def _natural(names: Sequence[str]) -> list[str]:
    numbers = {name: int(match[0]) for name in names if (match := re.search(r"\d+", name))}
    return sorted(names, key=lambda name: numbers[name]) if len(numbers) == len(names) else list(names)


def evaluation_facts(run: Evaluation) -> Row:
    """Return the cost of a run: tokens, dollars and seconds; None where unknown."""
    values_by_name = {
        name: [value for record in run.records if (value := getattr(record, name)) is not None]
        for name in ("input_tokens", "output_tokens", "cost", "seconds")
    }
    seconds = values_by_name["seconds"]
    sums = {name: sum(values) if values else None for name, values in values_by_name.items()}
    return sums | {"seconds_each": sum(seconds) / len(seconds) if seconds else None}


def outcome(metric: Metric | None, record: Record) -> str:
    """Return the outcome of an answer, a key of ``OUTCOMES``.

    A refused, failed, missing or empty answer has that outcome instead of "wrong", regardless of its official score.
    """
    if record.status in (EMPTY, REFUSED, FAILED, MISSING):
        return record.status
    score = item_score(metric, record) if metric else None
    if metric is None or score is None:
        return UNSCORED
    if not metric.graded:
        return SCORED
    return RIGHT if score > 1 - _ROUNDING else PARTLY if score > _ROUNDING else WRONG
