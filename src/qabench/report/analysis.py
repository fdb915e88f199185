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
from qabench.evaluation import Evaluation, ExtraSection, ScoreSpec
from qabench.evaluation.comparison import Comparison, Pair, compare
from qabench.evaluation.evaluation import labels, without_superseded
from qabench.evaluation.matching import matched
from qabench.evaluation.records import Score, column_names, distinct, scores_of
from qabench.evaluation.score_spec import present
from qabench.stats import Interval

Row = dict[str, Any]
MOST_GROUPS = 15  # groups of a grouping that are shown, the largest ones


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
        return sorted(names, key=[*self.benchmark.groupings, *names].index)

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
class Breakdown:
    """Scores by the groups of one grouping.

    The shown groups are in the order of display, each with its number of questions over all runs.
    """

    grouping: str
    title: str
    groups: Mapping[str, int]
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
    ids = grouped(
        (name, record.id)
        for groups in by_run.values()
        for name, records in groups.items()
        for record in records
    )
    if len(ids) < 2 or not section.score_specs:
        return None
    sizes = {name: len(set(of_group)) for name, of_group in ids.items()}
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:MOST_GROUPS]
    numbers = {name: int(match[0]) for name in largest if (match := re.search(r"\d+", name))}
    if len(numbers) == len(largest):  # such as chapters
        largest.sort(key=numbers.__getitem__)
    title = section.grouping_title(grouping)
    if len(ids) > MOST_GROUPS:
        title += f" (the {MOST_GROUPS} largest of {len(ids)} groups)"
    scores = {}
    for label, groups in by_run.items():
        specs = section.runs[label].score_specs
        scores[label] = {name: scores_of(specs, groups.get(name, ())) for name in largest}
    return Breakdown(grouping, title, {name: sizes[name] for name in largest}, scores)


def finding(comparison: Comparison) -> str:
    """Return the finding of a comparison with at least one pair."""
    leader = next(iter(comparison.systems))
    score = _value(comparison.systems[leader])
    best = f"{comparison.spec.title}: {leader} is the best system, {score}"
    pairs = [pair for pair in comparison.pairs if leader in (pair.first, pair.second)]
    if not pairs:
        return f"{best}. It shares no questions with the other systems."
    nearest = _test(pairs[0], comparison)
    if abs(pairs[0].difference.interval.mean) < 1e-9:
        (equal,) = {pairs[0].first, pairs[0].second} - {leader}
        ahead = f"{best}. It equals {equal} on the questions that both answered"
    elif leader == pairs[0].first:
        ahead = f"{best}. It is {nearest} ahead of {pairs[0].second}"
    else:  # which is better on the questions that both answered
        ahead = f"{best}. It is {nearest} behind {pairs[0].first}"
    beaten = sum(pair.significant and pair.first == leader for pair in pairs)
    if len(pairs) == 1:
        return f"{ahead}; it is {'' if beaten else 'not '}significantly better."
    return f"{ahead}; it is significantly better than {beaten} of {len(pairs)} other systems."


def single(label: str, score: Score) -> str:
    """Return the finding for one system."""
    return f"{score.spec.title}: {label} has {_value(score)}."


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
