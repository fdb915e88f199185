"""The sections of a report, one per config, and their numbers: scores, comparisons, groups, outcomes, findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import Any

from qabench.benchmarks import Benchmark, benchmark
from qabench.benchmarks.published import (
    RankedSystem,
    is_local,
    own_entries,
    published_entries,
    ranked,
    ranks,
)
from qabench.data.rows import Json, grouped
from qabench.errors import InputError, SourceError
from qabench.evaluation import (
    EMPTY,
    FAILED,
    MISSING,
    REFUSED,
    Evaluation,
    ExtraSection,
    Record,
    ScoreSpec,
    SectionRow,
)
from qabench.evaluation.comparison import Comparison, Pair, compare
from qabench.evaluation.evaluation import labels, without_superseded
from qabench.evaluation.matching import matched
from qabench.evaluation.records import CURVE, Score, column_names, distinct, item_score, scores_of
from qabench.evaluation.score_spec import Pass, present
from qabench.stats import Interval

Row = dict[str, Any]
SMALL = 10  # smaller groups are binned
NAMED = 3  # systems that a sentence names. The others are counted
MOST_GROUPS = 15  # groups of a grouping. The smallest others are binned

# The outcome of each answer: right, partly right or wrong if the score is graded, or why there is
# no score.
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
class Section:
    """The evaluations on one config.

    Attributes:
        key: the section's name in links, such as "fanoutqa-dev".
        runs: by label, in the given order. Labels are short and distinct.
        score_specs: the scores whose columns at least one run has, in the benchmark's order.
        headline: the main score. None if nothing is scored.
        superseded: the paths of runs that are left out, because another run resumed them.
    """

    key: str
    benchmark: Benchmark
    config: str
    runs: Mapping[str, Evaluation]
    score_specs: Sequence[ScoreSpec]
    headline: ScoreSpec | None
    superseded: Sequence[str] = ()

    @property
    def groupings(self) -> list[str]:
        """Return the groupings that at least one run has, in the benchmark's order.

        Others follow.
        """
        names = dict.fromkeys(name for run in self.runs.values() for name in run.groupings())
        declared = [name for name in self.benchmark.groupings if name in names]
        return list(dict.fromkeys([*declared, *names]))

    def score_spec(self, name: str) -> ScoreSpec:
        """Return the score with this name, which at least one run has."""
        return next(spec for spec in self.score_specs if spec.name == name)

    def grouping_title(self, grouping: str) -> str:
        """Return the grouping in words, such as "type of answer"."""
        return self.benchmark.groupings.get(grouping, grouping.replace("_", " "))


def sections_of(runs: Sequence[Evaluation]) -> list[Section]:
    """Return the evaluations by benchmark and config, in the order of first appearance.

    Runs that were resumed by another run are left out.

    Raises:
        InputError: no evaluations, or one without records.
    """
    if not runs:
        raise InputError(
            "nothing to report: at least one log of a run or one file of predictions is required"
        )
    current, superseded = without_superseded(runs)
    if empty := [run for run in current if not run.records]:
        raise InputError(
            f"{empty[0].path} has no records yet (status: {empty[0].status}); there is nothing to report"
        )
    runs_by_config = grouped(((run.benchmark, run.config), run) for run in current)
    keys = distinct(
        [re.sub(r"[^a-z0-9]+", "-", f"{b or 'task'}-{c}".lower()) for b, c in runs_by_config]
    )
    sections = []
    for key, ((name, config), members) in zip(keys, runs_by_config.items(), strict=True):
        members = members if name else matched(members)
        columns = column_names(record for run in members for record in run.records)
        declared = {spec.name: spec for run in members for spec in run.score_specs}
        sections.append(
            Section(
                key,
                benchmark(name),
                config,
                runs=dict(zip(labels(members), members, strict=True)),
                score_specs=present(list(declared.values()) or benchmark(name).scores, columns),
                headline=benchmark(name).headline_score(members),
                superseded=[
                    run.path for run in superseded if (run.benchmark, run.config) == (name, config)
                ],
            )
        )
    return sections


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a grouping with its number of questions over all runs, or the bin of the small groups ``members``."""

    name: str
    questions: int
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Scores by the groups of one grouping, in the order of display."""

    grouping: str
    title: str
    groups: Sequence[Group]
    # run -> group's name -> score's name -> score
    scores: Mapping[str, Mapping[str, Mapping[str, Score]]]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The numbers of a section.

    Attributes:
        scores, deviations, ranks: run -> name -> score, sentences, or its rank among
        published scores.
        comparisons: score's name -> its comparison, or {} for a single run.
        outcomes: run -> outcome -> number of answers. Only outcomes that occur.
        leaderboard: published scores and runs by the main score; () without published scores.
    """

    scores: Mapping[str, Mapping[str, Score]]
    comparisons: Mapping[str, Comparison]
    breakdowns: Sequence[Breakdown]
    extra: Sequence[ExtraSection]
    outcomes: Mapping[str, Mapping[str, int]]
    deviations: Mapping[str, Mapping[str, Sequence[str]]]
    ranks: Mapping[str, Mapping[str, str]]
    leaderboard: Sequence[RankedSystem]

    def as_dict(self) -> Json:
        """Return the numbers as rows of plain data."""
        return {
            "scores": [
                {"run": run, **score_row(score)}
                for run, scores in self.scores.items()
                for score in scores.values()
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
            "leaderboard": list(map(asdict, self.leaderboard)),
            "outcomes": [
                {"run": run, "outcome": name, "n": n}
                for run, counts in self.outcomes.items()
                for name, n in counts.items()
            ],
        }


Sections = Sequence[tuple[Section, Analysis]]
"""The sections of a report with their numbers."""


def analyze(section: Section) -> Analysis:
    """Return all numbers of a section.

    Takes some hundredths of a second per run, score and group.
    """
    scores = {label: run.scores() for label, run in section.runs.items()}
    extra = [part for part in section.benchmark.report_sections(section.runs) if part.rows]
    extra += _pass_curves(scores)
    replaced = {part.replaces for part in extra}
    scored = {label: run for label, run in section.runs.items() if scores[label]}
    comparisons = [compare(scored, spec) for spec in section.score_specs]
    return Analysis(
        scores=scores,
        comparisons={
            comparison.spec.name: comparison for comparison in comparisons if comparison.pairs
        },
        breakdowns=[
            breakdown
            for name in section.groupings
            if name not in replaced and (breakdown := _breakdown(section, name))
        ],
        extra=extra,
        outcomes=_outcomes(section),
        deviations={
            label: {name: section.runs[label].deviations(score) for name, score in by_name.items()}
            for label, by_name in scores.items()
        },
        ranks={label: ranks(run) for label, run in section.runs.items()},
        leaderboard=_leaderboard(section),
    )


def score_row(score: Score) -> Row:
    """Return a score as plain data."""
    return {
        "metric": score.spec.name,
        **{
            name: getattr(score.interval, name)
            for name in ("mean", "low", "high", "standard_error", "undefined")
        },
        "n": score.n,
        "unit": score.spec.unit,
        "left_out": score.left_out,
    }


def extra_dict(extra: ExtraSection) -> Row:
    """Return a benchmark's additional section as plain data."""
    rows = [
        {"run": row.system, "score": row.score, "at": row.at}
        | {name: getattr(row.interval, name) for name in ("mean", "low", "high")}
        | {"n": row.n}
        for row in extra.rows
    ]
    return {name: getattr(extra, name) for name in ("title", "kind", "unit", "note", "axis")} | {
        "rows": rows
    }


def _pass_curves(scores: Mapping[str, Mapping[str, Score]]) -> list[ExtraSection]:
    """Return a chart over k of each score with pass@k and pass^k."""
    pairs: list[tuple[str, SectionRow]] = []
    for label, by_name in scores.items():
        for score in by_name.values():
            if isinstance(curve := score.spec.reducer, Pass):
                title, _, name = score.spec.title.rpartition(", ")
                row = SectionRow(label, f"{name[:5]}k", curve.k, score.interval, score.n)
                pairs.append((title, row))
    note = "pass@k: at least one of k answers is right. pass^k: all k are."
    return [
        ExtraSection(f"{title} of several answers", "questions", of_title, CURVE, note, axis="k")
        for title, of_title in grouped(pairs).items()
    ]


def _leaderboard(section: Section) -> list[RankedSystem]:
    if section.headline is None or not is_local(section.benchmark.name):
        return []
    name = section.headline.name
    try:
        published = [
            entry for entry in published_entries(section.benchmark.name) if entry.metric == name
        ]
    except SourceError:  # a damaged file
        return []
    own = [
        replace(entry, system=label, source="run")
        for label, run in section.runs.items()
        for entry in own_entries(run, [name])
    ]
    return ranked([*published, *own], section.benchmark) if published and own else []


def _outcomes(section: Section) -> dict[str, dict[str, int]]:
    counts_by_run = {}
    for label, run in section.runs.items():
        counts = Counter(outcome(section.headline, record) for record in run.records)
        counts[MISSING] += max(0, run.expected - len(run.records))
        counts_by_run[label] = {name: counts[name] for name in OUTCOMES if counts[name]}
    return counts_by_run


def _breakdown(section: Section, grouping: str) -> Breakdown | None:
    by_run = {label: run.by_group(grouping) for label, run in section.runs.items() if run.answered}
    groups = _groups(by_run)
    if len(groups) < 2 or not section.score_specs:
        return None
    scores = {}
    for label, records_by_group in by_run.items():
        # A run with fewer samples lacks some pass@k.
        own = section.runs[label].score_specs
        specs = [spec for spec in section.score_specs if not spec.reducer or spec in own]
        scores[label] = {
            group.name: scores_of(specs, _records(group, records_by_group)) for group in groups
        }
    return Breakdown(grouping, section.grouping_title(grouping), groups, scores)


def _records(group: Group, records_by_group: Mapping[str, Sequence[Record]]) -> list[Record]:
    """Return the records of a group or bin once each.

    A record can be in several groups.
    """
    names = group.members or (group.name,)
    return list(
        {id(record): record for name in names for record in records_by_group.get(name, ())}.values()
    )


def _groups(by_run: Mapping[str, Mapping[str, Sequence[Record]]]) -> list[Group]:
    """Return the groups by the numbers in their names if all have one, else the largest first.

    The bin is last.
    """
    ids: dict[str, set[str]] = {}
    for records_by_group in by_run.values():
        for name, records in records_by_group.items():
            ids.setdefault(name, set()).update(record.id for record in records)
    largest = sorted(ids, key=lambda name: (-len(ids[name]), name))
    shown = [name for name in largest[:MOST_GROUPS] if len(ids[name]) >= SMALL]
    if not shown or len(largest) - len(shown) < 2:
        shown = largest[:MOST_GROUPS]
    binned = largest[len(shown) :]
    numbers = {name: int(match[0]) for name in shown if (match := re.search(r"\d+", name))}
    if len(numbers) == len(shown):
        shown.sort(key=numbers.__getitem__)
    groups = [Group(name, len(ids[name])) for name in shown]
    if binned:
        all_ids = {id for name in binned for id in ids[name]}
        groups.append(Group(f"{len(binned)} smaller groups", len(all_ids), tuple(binned)))
    return groups


def outcome(spec: ScoreSpec | None, record: Record) -> str:
    """Return the outcome of an answer, a key of ``OUTCOMES``.

    A refused, failed, missing or empty answer has that outcome instead of "wrong", regardless of
    its official score.
    """
    if record.status in (EMPTY, REFUSED, FAILED, MISSING):
        return record.status
    score = item_score(spec, record) if spec else None
    if spec is None or score is None:
        return UNSCORED
    if not spec.graded:
        return SCORED
    return RIGHT if score > 1 - _ROUNDING else PARTLY if score > _ROUNDING else WRONG


def finding(comparison: Comparison) -> str:
    """Return the finding of a comparison with at least one pair."""
    leader = next(iter(comparison.systems))
    pairs = {
        (pair.second if pair.first == leader else pair.first): pair
        for pair in comparison.pairs
        if leader in (pair.first, pair.second)
    }
    title = _lowered(comparison.spec.title)
    score = _value(comparison.systems[leader])
    best = f"{leader} has the best {title}: {score}"
    rivals = [label for label in comparison.systems if label in pairs]
    if not rivals:
        return f"{best}. It shares no questions with the other systems."
    equal = list(takewhile(lambda label: abs(pairs[label].difference.interval.mean) < 1e-9, rivals))
    behind = rivals[len(equal) :]
    if not behind:
        values = {f"{comparison.systems[label].value:.9f}" for label in (leader, *equal)}
        if len(values) > 1:  # they were asked different questions
            return f"{best}. On the questions that it shares with {_named(equal)}, they are equal."
        return f"{_named([leader, *equal])} have the same {title}: {score}."
    beaten = [pair.second for pair in pairs.values() if pair.significant and pair.first == leader]
    tied = [label for label in behind if label not in beaten]
    if equal:
        best = f"{_named([leader, *equal])} have the best {title}: {score}"
        return f"{best}; {leader} is {'not ' if tied else ''}significantly better than {_named(tied or behind)}."
    ahead = f"{best}. It is {_test(pairs[rivals[0]], comparison)} ahead of {rivals[0]}"
    if tied:
        return f"{ahead}; it is not significantly better than {_named(tied)}."
    return f"{ahead}; it is significantly better{' than all other systems' if len(rivals) > 1 else ''}."


def single(label: str, score: Score) -> str:
    """Return the finding for one system."""
    return f"{label}: {_lowered(score.spec.title)} {_value(score)}."


def _value(score: Score) -> str:
    return f"{score.value:.3f} ({_bounds(score.interval)}, n = {score.size})"


def _bounds(interval: Interval) -> str:
    return f"95% CI {interval.bounds('.3f')}"


def _test(pair: Pair, comparison: Comparison) -> str:
    interval = pair.difference.interval
    p = "p < 0.001" if pair.corrected_p < 0.001 else f"p = {pair.corrected_p:.3f}"
    corrected = "corrected " if len(comparison.pairs) > 1 else ""
    bounds = _bounds(interval).replace("-", "\N{MINUS SIGN}")
    return f"{interval.mean:.3f} ({bounds}, paired test, {corrected}{p}, n = {pair.n:,})"


def _lowered(title: str) -> str:
    # Abbreviations keep their capitals.
    return (
        title
        if title[1:2].isupper() or title[1:2].isdigit() or "@" in title
        else title[:1].lower() + title[1:]
    )


def _named(labels: Sequence[str]) -> str:
    if len(labels) > NAMED + 1:  # the last one is named instead of "1 other"
        return f"{', '.join(labels[:NAMED])} and {len(labels) - NAMED} others"
    return " and ".join(filter(None, [", ".join(labels[:-1]), labels[-1]]))
