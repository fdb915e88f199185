"""The sections of a report, one per config, and their numbers: scores, comparisons, groups, findings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from qabench.benchmarks import Benchmark, benchmark
from qabench.benchmarks.published import RankedSystem, local_entries, own_entries, ranked
from qabench.data.rows import Json, grouped
from qabench.errors import InputError
from qabench.evaluation import Evaluation, ExtraSection, Record, ScoreSpec
from qabench.evaluation.comparison import Comparison, Pair, compare
from qabench.evaluation.evaluation import labels, without_superseded
from qabench.evaluation.matching import matched
from qabench.evaluation.records import Score, column_names, distinct, scores_of
from qabench.evaluation.score_spec import present
from qabench.stats import Interval

Row = dict[str, Any]
SMALL = 10  # smaller groups are binned
NAMED = 3  # systems that a sentence names. The others are counted
MOST_GROUPS = 15  # groups of a grouping. The smallest others are binned


@dataclass(frozen=True)
class Section:
    """The evaluations on one config, and their numbers, which are computed when they are first used.

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

    @cached_property
    def scores(self) -> dict[str, dict[str, Score]]:
        """Return the scores by run and name."""
        return {label: run.scores() for label, run in self.runs.items()}

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Return the comparisons by score, without scores that fewer than two runs have."""
        scored = {label: run for label, run in self.runs.items() if self.scores[label]}
        comparisons = [compare(scored, spec) for spec in self.score_specs]
        return {each.spec.name: each for each in comparisons if each.pairs}

    @cached_property
    def extra(self) -> list[ExtraSection]:
        """Return the sections that the benchmark adds."""
        return [part for part in self.benchmark.report_sections(self.runs) if part.rows]

    @cached_property
    def breakdowns(self) -> list[Breakdown]:
        """Return the scores by group, of groupings that no added section replaces."""
        replaced = {part.replaces for part in self.extra}
        names = [name for name in self.groupings if name not in replaced]
        return list(filter(None, [_breakdown(self, name) for name in names]))

    @cached_property
    def deviations(self) -> dict[str, dict[str, list[str]]]:
        """Return what distinguishes scores from official ones, in sentences, by run and score."""
        return {
            label: {name: run.deviations(score) for name, score in self.scores[label].items()}
            for label, run in self.runs.items()
        }

    @cached_property
    def leaderboard(self) -> list[RankedSystem]:
        """Return published scores and runs by the main score, or [] without published scores."""
        if self.headline is None:
            return []
        name = self.headline.name
        published = [entry for entry in local_entries(self.benchmark.name) if entry.metric == name]
        own = [
            replace(entry, system=label, source="run")
            for label, run in self.runs.items()
            for entry in own_entries(run, [name])
        ]
        return ranked([*published, *own], self.benchmark) if published and own else []

    @property
    def groupings(self) -> list[str]:
        """Return the groupings that at least one run has, in the benchmark's order.

        Others follow.
        """
        names = dict.fromkeys(name for run in self.runs.values() for name in run.groupings())
        declared = [name for name in self.benchmark.groupings if name in names]
        return list(dict.fromkeys([*declared, *names]))

    def grouping_title(self, grouping: str) -> str:
        """Return the grouping in words, such as "type of answer"."""
        return self.benchmark.groupings.get(grouping, grouping.replace("_", " "))

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
        }


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
    # run -> group's name -> name of the score -> score
    scores: Mapping[str, Mapping[str, Mapping[str, Score]]]


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


def finding(comparison: Comparison) -> str:
    """Return the finding of a comparison with at least one pair."""
    leader = next(iter(comparison.systems))
    pairs = {
        (pair.second if pair.first == leader else pair.first): pair
        for pair in comparison.pairs
        if leader in (pair.first, pair.second)
    }
    title = _lowered(comparison.spec.title)
    score = comparison.systems[leader]
    best = f"{leader} has the best {title}: {_value(score)}"
    rivals = [label for label in comparison.systems if label in pairs]
    if not rivals:
        return f"{best}. It shares no questions with the other systems."
    nearest = pairs[rivals[0]]
    side = "ahead of" if nearest.first == leader else "behind"
    best += f". It is {_test(nearest, comparison)} {side} {rivals[0]}"
    equal = [label for label in rivals if _is_same(score, comparison.systems[label], pairs[label])]
    behind = [label for label in rivals if label not in equal]
    if equal:
        which = "best" if behind else "same"
        best = f"{_named([leader, *equal])} have the {which} {title}: {_value(score)}"
    if not behind:
        return f"{best}."
    beaten = [pair.second for pair in pairs.values() if pair.significant and pair.first == leader]
    tied = [label for label in behind if label not in beaten]
    verdict = f"is {'not ' if tied else ''}significantly better than {_named(tied or behind)}"
    return f"{best}; {leader if equal else 'it'} {verdict}."


def _is_same(first: Score, second: Score, pair: Pair) -> bool:
    """Return whether the scores are equal, also on the questions that both systems have."""
    return max(abs(first.value - second.value), abs(pair.difference.interval.mean)) < 1e-9


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
