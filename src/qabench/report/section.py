"""The sections of a report: the evaluations on one config with scores, comparisons and groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain

from qabench.benchmarks import Benchmark, benchmark
from qabench.benchmarks.published import RankedSystem, local_entries, own_entries, ranked
from qabench.data.rows import Json, grouped
from qabench.errors import InputError
from qabench.evaluation import Evaluation, ExtraSection, ScoreSpec
from qabench.evaluation.comparison import Comparison, compare
from qabench.evaluation.labels import labels
from qabench.evaluation.matching import matched
from qabench.evaluation.paper import PaperTable, paper_table
from qabench.evaluation.paper_content import PaperColumn
from qabench.evaluation.records import Score, column_names, distinct
from qabench.evaluation.resumed import without_superseded
from qabench.evaluation.score_spec import present
from qabench.report.breakdown import Row, breakdown, score_row, undefined_row
from qabench.report.finding import finding, score_with_interval, without


@dataclass(frozen=True)
class Section:
    """The evaluations on one config, and their numbers, which are computed on first use.

    Attributes:
        key: the section's name in links, such as "fanoutqa-dev".
        runs: the runs by label, in the given order. Labels are short and distinct.
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
        """Return the scores that a run has: the headline first, then in the benchmark's order."""
        scored = set(chain.from_iterable(self.scores.values()))
        specs = [spec for spec in self.score_specs if spec.name in scored]
        headline = self.headline.name if self.headline else None
        return sorted(specs, key=lambda spec: headline not in (None, spec.name))

    @cached_property
    def findings(self) -> dict[str, str]:
        """Return the findings by score, or one sentence under "" if there are no scores."""
        sentences = {}
        for spec in self.scored_specs:
            unscored = [label for label in self.runs if spec.name not in self.scores[label]]
            if comparison := self.comparisons.get(spec.name):
                sentences[spec.name] = finding(comparison, unscored)
            else:
                scored = (label for label in self.runs if spec.name in self.scores[label])
                label = next(scored)
                value = score_with_interval(self.scores[label][spec.name])
                sentences[spec.name] = f"{spec.title}: {label} has {value}.{without(unscored)}"
        if not sentences:
            reasons = {run.why_unscored() or "" for run in self.runs.values()}
            sentences[""] = f"There are no scores: {'; '.join(sorted(reasons))}."
        return sentences

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Return the comparisons by score, without scores by which no two runs can be compared."""
        scored = {label: run for label, run in self.runs.items() if self.scores[label]}
        if len(scored) < 2:
            return {}
        comparisons = [compare(scored, spec) for spec in self.score_specs]
        return {comparison.spec.name: comparison for comparison in comparisons if comparison.pairs}

    @cached_property
    def paper_table(self) -> PaperTable | None:
        """Return the main scores as a table for a paper, or None if no run has one."""
        columns = []
        for spec in self.scored_specs:
            by_label = {}
            for label, scores in self.scores.items():
                if spec.name in scores:
                    by_label[label] = scores[spec.name]
            if not spec.main:
                continue
            if comparison := self.comparisons.get(spec.name):
                columns.append(PaperColumn(spec, by_label, comparison.marks()))
            else:
                columns.append(PaperColumn(spec, by_label))
        if not columns:
            return None
        evaluations = {label: [run] for label, run in self.runs.items()}
        return paper_table(columns, evaluations, titles={self.benchmark.name: self.benchmark.title})

    @cached_property
    def extra(self) -> list[ExtraSection]:
        """Return the sections that the benchmark adds."""
        return [part for part in self.benchmark.report().sections(self.runs) if part.rows]

    @cached_property
    def breakdowns(self) -> list[Row]:
        """Return the scores by group, unless a section of the benchmark shows the grouping."""
        replaced = {part.replaces for part in self.extra}
        breakdowns = []
        for grouping in self.groupings:
            if grouping not in replaced:
                title = self.grouping_title(grouping)
                breakdowns.append(breakdown(self.runs, grouping, title))
        return [rows for rows in breakdowns if rows]

    @cached_property
    def leaderboard(self) -> list[RankedSystem]:
        """Rank published scores and runs by the main score. Return [] without published scores."""
        if self.headline is None:
            return []
        name = self.headline.name
        published = [entry for entry in local_entries(self.benchmark.name) if entry.metric == name]
        own = []
        for label, run in self.runs.items():
            for entry in own_entries(run, [name]):
                own.append(replace(entry, system=label, source="run"))
        if not published or not own:
            return []
        return ranked([*published, *own], self.benchmark)

    @property
    def groupings(self) -> list[str]:
        """Return the groupings that at least one run has, in the benchmark's order. Others follow."""
        names = dict.fromkeys(chain.from_iterable(run.groupings() for run in self.runs.values()))
        return sorted(names, key=[*self.benchmark.groupings, *names].index)

    def grouping_title(self, grouping: str) -> str:
        """Return the grouping in words, such as "type of answer"."""
        return self.benchmark.groupings.get(grouping, grouping.replace("_", " "))

    def as_dict(self) -> Json:
        """Return the numbers as rows of plain data."""
        scores = []
        for label, by_name in self.scores.items():
            scores += [{"run": label, **score_row(score)} for score in by_name.values()]
            for name in self.runs[label].undefined():
                scores.append({"run": label, **undefined_row(name)})
        groups: list[Row] = []
        for rows_by_group in self.breakdowns:
            groups += rows_by_group["rows"]
        return {
            "scores": scores,
            "comparisons": [comparison.as_dict() for comparison in self.comparisons.values()],
            "groups": groups,
            "sections": list(map(_extra, self.extra)),
            "leaderboard": list(map(asdict, self.leaderboard)),
        }


def sections_of(runs: Sequence[Evaluation]) -> list[Section]:
    """Return the evaluations by benchmark and config, in the order of first appearance.

    Runs that were resumed by another run are left out.

    Raises:
        InputError: an evaluation has no records, or logs of another task have different questions.
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
        # Tasks of other harnesses have no benchmark name, so they are matched by their questions.
        runs_of_config = members if name else matched(members)
        declared: dict[str, ScoreSpec] = {}
        for run in runs_of_config:
            declared |= {spec.name: spec for spec in run.score_specs}
        columns = column_names(chain.from_iterable(run.records for run in runs_of_config))
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
