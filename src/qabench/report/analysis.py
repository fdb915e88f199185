"""The sections of a report, one per config, and their numbers: scores, comparisons, groups, findings."""

from __future__ import annotations

import re
from collections import Counter
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
from qabench.evaluation.records import Score, column_names, distinct
from qabench.evaluation.score_spec import present

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
    def scored_specs(self) -> list[ScoreSpec]:
        """Return the scores that at least one run has: the headline first, then in the benchmark's order."""
        scored = {name for scores in self.scores.values() for name in scores}
        specs = [spec for spec in self.score_specs if spec.name in scored]
        headline = self.headline.name if self.headline else None
        return sorted(specs, key=lambda spec: headline not in (None, spec.name))

    @cached_property
    def findings(self) -> dict[str, str]:
        """Return the finding in one sentence, by score, or by "" if there is no score."""
        sentences = {}
        for spec in self.scored_specs:
            if comparison := self.comparisons.get(spec.name):
                unscored = [label for label in self.runs if spec.name not in self.scores[label]]
                sentences[spec.name] = finding(comparison, unscored)
            else:
                scored = (label for label in self.runs if spec.name in self.scores[label])
                label = next(scored)
                value = _value(self.scores[label][spec.name])
                sentences[spec.name] = f"{spec.title}: {label} has {value}."
        if not sentences:
            reasons = {run.why_unscored() or "" for run in self.runs.values()}
            sentences[""] = f"There are no scores: {'; '.join(sorted(reasons))}."
        return sentences

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
    def breakdowns(self) -> list[Row]:
        """Return the scores by group, of groupings that no added section replaces.

        Each has the grouping as key, a title, the shown groups, and one row per run, group and
        score.
        """
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
        scores = []
        for label, by_name in self.scores.items():
            scores += [{"run": label, **_score_row(score)} for score in by_name.values()]
        return {
            "scores": scores,
            "comparisons": [comparison.as_dict() for comparison in self.comparisons.values()],
            "groups": [row for breakdown in self.breakdowns for row in breakdown["rows"]],
            "sections": list(map(_extra, self.extra)),
            "leaderboard": list(map(asdict, self.leaderboard)),
        }


def sections_of(runs: Sequence[Evaluation]) -> list[Section]:
    """Return the evaluations by benchmark and config, in the order of first appearance.

    Runs that were resumed by another run are left out.

    Raises:
        InputError: an evaluation has no records.
    """
    current, superseded = without_superseded(runs)
    if empty := [run for run in current if not run.records]:
        raise InputError(
            f"{empty[0].path} has no records yet (status: {empty[0].status}); there is nothing to report"
        )
    runs_by_config = grouped(((run.benchmark, run.config), run) for run in current)
    names = [f"{name or 'task'}-{config}".lower() for name, config in runs_by_config]
    keys = distinct([re.sub(r"[^a-z0-9]+", "-", name) for name in names])
    sections = []
    for key, ((name, config), members) in zip(keys, runs_by_config.items(), strict=True):
        runs_of_config = members if name else matched(members)
        declared = {spec.name: spec for run in runs_of_config for spec in run.score_specs}
        columns = column_names(record for run in runs_of_config for record in run.records)
        resumed = [run.path for run in superseded if run.questions == members[0].questions]
        section = Section(
            key,
            benchmark(name),
            config,
            runs=dict(zip(labels(members), runs_of_config, strict=True)),
            score_specs=present(list(declared.values()), columns),
            headline=benchmark(name).headline_score(runs_of_config),
            superseded=resumed,
        )
        sections.append(section)
    return sections


def _score_row(score: Score) -> Row:
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


def _extra(extra: ExtraSection) -> Row:
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
    return {
        "title": extra.title,
        "kind": extra.kind,
        "unit": extra.unit,
        "note": extra.note,
        "axis": extra.axis,
        "rows": rows,
    }


def _breakdown(section: Section, grouping: str) -> Row | None:
    sizes: Counter[str] = Counter()
    for run in section.runs.values():
        groups = run.by_group(grouping) if run.answered else {}
        sizes.update({name: len(records) for name, records in groups.items()})
    if len(sizes) < 2 or not section.score_specs:
        return None
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:MOST_GROUPS]
    numbers = {name: int(match[0]) for name in largest if (match := re.search(r"\d+", name))}
    if len(numbers) == len(largest):  # such as chapters
        largest.sort(key=numbers.__getitem__)
    title = section.grouping_title(grouping)
    if len(sizes) > MOST_GROUPS:
        title += f" (the {MOST_GROUPS} largest of {len(sizes)} groups)"
    rows: list[Row] = []
    for label, run in section.runs.items():
        scores_by_group = run.scores_by_group(grouping)
        for name in largest:
            place = {"run": label, "grouping": grouping, "group": name}
            scores = scores_by_group.get(name, {})
            rows += [place | _score_row(score) for score in scores.values()]
    return {"key": grouping, "title": title, "groups": largest, "rows": rows}


def finding(comparison: Comparison, unscored: Sequence[str] = ()) -> str:
    """Return the finding of a comparison with at least one pair.

    Which system is best is only said if it is known: all systems are scored on the same questions,
    and the first one is significantly better than each of the others.

    Args:
        comparison: of the systems by a score.
        unscored: the labels of the systems that do not have the score.
    """
    leader = next(iter(comparison.systems))
    title, several = comparison.spec.title, len(comparison.pairs)
    pairs = [pair for pair in comparison.pairs if leader in (pair.first, pair.second)]
    nearest = (pairs or comparison.pairs)[0]
    if nearest.second == leader:  # of two equal scores
        leader = nearest.first
        pairs = [pair for pair in comparison.pairs if leader in (pair.first, pair.second)]
    missing = f" {nearest.missing()}." if nearest.missing() else ""
    if unscored:
        missing += f" Without this score: {', '.join(unscored)}."
    measured = _test(nearest, several)
    if not comparison.same_questions:
        ahead = f"{nearest.first} is {measured} ahead of {nearest.second}; {_decided(nearest)}"
        if nearest.is_equal:
            ahead = f"{nearest.first} and {nearest.second} have equal scores"
        return (
            f"{title}: the systems have scores for different questions, so their scores do not rank them. "
            f"On the {nearest.n:,} that both have, {ahead}.{missing}"
        )
    score = _value(comparison.systems[leader])
    if nearest.is_equal:
        return f"{title}: {leader} and {nearest.second} have equal scores, {score}.{missing}"
    beaten = sum(pair.significant and pair.first == leader for pair in pairs)
    if beaten == len(pairs):
        others = f" than each of the {len(pairs)} other systems" if len(pairs) > 1 else ""
        return (
            f"{title}: {leader} is the best system, {score}. It is {measured} ahead of {nearest.second}; "
            f"it is significantly better{others}.{missing}"
        )
    better = (
        f" It is significantly better than {beaten} of {len(pairs)} other systems." if beaten else ""
    )
    return (
        f"{title}: no system is shown to be the best. {leader} has the best score, {score}. "
        f"It is {measured} ahead of {nearest.second}; {_decided(nearest)}.{better}{missing}"
    )


def _decided(pair: Pair) -> str:
    if not pair.answered:
        return "no question was answered by both"
    return "it is significantly better" if pair.significant else "the two cannot be told apart"


def _value(score: Score) -> str:
    return f"{score.value:.3f} (95% CI {score.interval.bounds('.3f')}, n = {score.size})"


def _test(pair: Pair, pairs: int) -> str:
    interval = pair.difference.interval
    p = "p < 0.001" if pair.corrected_p < 0.001 else f"p = {pair.corrected_p:.3f}"
    corrected = "corrected " if pairs > 1 else ""
    uncorrected = ", not corrected" if pairs > 1 else ""
    bounds = interval.bounds(".3f").replace("-", "\N{MINUS SIGN}")
    return f"{interval.mean:.3f} (95% CI {bounds}{uncorrected}; paired test, {corrected}{p}, n = {pair.n:,})"
