"""What the page's template shows of a section: tables as cells, and charts as specifications with their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qabench.evaluation import STATUSES, Evaluation
from qabench.report import charts
from qabench.report.analysis import Analysis, Breakdown, Row
from qabench.report.names import OUTCOME_NAMES, OUTCOMES, figure_about, figure_name, grouping_name
from qabench.report.sections import Section, distinct

# Of the runs, in order, so that nobody needs to see colours: outlines within a square of side 2 around the origin.
SHAPES = (
    "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "M-.9,-.9H.9V.9H-.9Z",
    "M0,-1.2L1.1,0L0,1.2L-1.1,0Z",
    "M0,-1.1L1.1,.9H-1.1Z",
    "M0,1.1L1.1,-.9H-1.1Z",
    "M-.4,-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
    "M-1.1,-.4H1.1V.4H-1.1Z",
    "M0,-1.1L.95,-.55V.55L0,1.1L-.95,.55V-.55Z",
)
# Fields of signatures that say what ran, and not how it was scored.
OF_THE_SYSTEM = (
    *("model", "evaluator", "method", "by", "samples", "prompt", "temperature", "max_tokens", "replies"),
    *("query", "chunker", "chunk_size", "overlap", "corpus", "passages"),
)
NEITHER_GOOD_NOR_BAD = ("claims", "abstains")
MOST_GROUPS = 15  # in a chart; its table has all


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of the page.

    Attributes:
        id: names it in the page. title: for people. spec: Vega-Lite, without data.
        rows: its data. by_figure: whether the page shows the rows of one figure at a time, of a choice.
    """

    id: str
    title: str
    spec: dict[str, Any]
    rows: Sequence[Row]
    by_figure: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The chart as the page's data."""
        return {"title": self.title, "spec": self.spec, "rows": list(self.rows), "byFigure": self.by_figure}


def run_rows(section: Section) -> list[dict[str, Any]]:
    """The table of runs: what ran, how far it came, what it cost, what its scores depend on."""
    rows = []
    for label, run in section.runs.items():
        counts = run.counts()
        tokens = [[getattr(record, name) for record in run.records] for name in ("input_tokens", "output_tokens")]
        known = [[number for number in of if number is not None] for of in tokens]
        seconds = [record.seconds for record in run.records if record.seconds is not None]
        rows.append(
            {
                "label": label,
                "run": run,
                "records": len(run.records),
                "counts": [(name, counts[name]) for name in (*STATUSES, "missing") if counts[name]],
                "tokens": [sum(of) if of else None for of in known],
                "seconds": sum(seconds) / len(seconds) if seconds else None,
            }
        )
    return rows


def problems_of(section: Section) -> dict[str, list[str]]:
    """What a reader of the figures must know, and of which runs."""
    found: dict[str, list[str]] = {}
    for label, run in section.runs.items():
        for problem in _problems(run):
            found.setdefault(problem, []).append(label)
    return found


def _problems(run: Evaluation) -> list[str]:
    said = []
    missing = run.counts()["missing"]
    if run.unofficial:
        said.append(f"Unofficial scores: {run.unofficial}.")
    if run.status != "success":
        said.append(f"The run did not finish (status: {run.status}).")
    if missing > 0:
        said.append(f"{missing:,} of {run.expected:,} answers are missing; the figures are of the others.")
    if run.unscored:
        said.append(f"Nothing is scored: {run.unscored}.")
    elif unscored := sum(not record.scores for record in run.records):
        said.append(f"{unscored:,} answers have no score; the figures are of the others.")
    return said


def unlike(section: Section) -> dict[str, list[str]]:
    """Families of scores in which runs were not scored alike, each with what of their signatures differs.

    What a signature says of the system, such as its prompt, may differ: that is what is compared.
    """
    found = {}
    for family in dict.fromkeys(family for run in section.runs.values() for family in run.signatures):
        lines = [run.signatures[family] for run in section.runs.values() if family in run.signatures]
        fields = [dict(part.partition(":")[::2] for part in line.split("|")) for line in lines]
        names = [name for name in dict.fromkeys(name for of in fields for name in of) if name not in OF_THE_SYSTEM]
        if differing := [name for name in names if len({of.get(name) for of in fields}) > 1]:
            found[family] = differing
    return found


def figures_of(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The figures of rows, each with its name and what it measures."""
    names = dict.fromkeys(row["figure"] for row in rows)
    return [{"key": name, "name": figure_name(name), "about": figure_about(name)} for name in names]


def score_table(section: Section, analysis: Analysis) -> list[dict[str, Any]]:
    """A row a figure, a cell a run; the best of several is marked."""
    table = []
    for figure in figures_of(analysis.scores):
        found = {row["run"]: row for row in analysis.scores if row["figure"] == figure["key"]}
        means = {row["mean"] for row in found.values()}
        best = max(means) if len(means) > 1 and figure["key"] not in NEITHER_GOOD_NOR_BAD else None
        cells = [found.get(label) for label in section.runs]
        table.append(figure | {"cells": [cell and cell | {"best": cell["mean"] == best} for cell in cells]})
    return table


def breakdown_table(breakdown: Breakdown) -> dict[str, Any]:
    """The figures of a breakdown as columns, its groups and runs as rows."""
    columns = dict.fromkeys(row["figure"] for row in breakdown.rows)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in breakdown.rows:
        rows.setdefault((row["group"], row["run"]), {"n": row["n"]})[row["figure"]] = row
    groups = dict.fromkeys(group for group, _ in rows)
    return {
        "title": grouping_name(breakdown.name),
        "unit": breakdown.unit,
        "note": breakdown.note,
        "left_out": max(0, len(groups) - MOST_GROUPS),
        "columns": [figure_name(column) for column in columns],
        "rows": [
            {"group": group, "run": run, "n": cells["n"], "cells": [cells.get(column) for column in columns]}
            for wanted in groups
            for (group, run), cells in rows.items()
            if group == wanted
        ],
    }


def charts_of(section: Section, analysis: Analysis) -> list[Chart]:
    """The section's charts, in the order of the page."""
    runs = list(section.runs)
    about = f"{section.title} {section.config}"
    scores = [_told(row) | {"name": figure_name(row["figure"])} for row in _fractions(analysis.scores)]
    names = list(dict.fromkeys(row["name"] for row in scores))
    found = [
        Chart("scores", f"scores, {about}", charts.whiskers(runs, "name", names, ["run", "name"]), scores),
        Chart("outcomes", f"answers by outcome, {about}", charts.outcomes(runs), _outcome_rows(analysis)),
    ]
    for breakdown in analysis.breakdowns:
        rows, order = _groups(breakdown)
        spec = charts.whiskers(runs, "label", order, ["run", "group"])
        title = f"by {grouping_name(breakdown.name)}, {about}"
        several = len({row["figure"] for row in rows}) > 1
        found.append(Chart(f"by {breakdown.name}", title, spec, rows, several))
    if analysis.pairs:
        pairs = [_pair(row) for row in analysis.pairs]
        order = list(dict.fromkeys(row["pair"] for row in pairs))
        found.append(Chart("pairs", f"differences, {about}", charts.differences(order), pairs, True))
    for figure in dict.fromkeys(row["figure"] for row in analysis.curves):
        rows = [_told(row) for row in analysis.curves if row["figure"] == figure]
        spec = charts.curve(runs, max(row["k"] for row in rows))
        found.append(Chart(f"{figure}@k", f"{figure}@k, {about}", spec, rows))
    return found


def _told(row: Row) -> Row:
    return row | {"interval": f"{row['low']:.3f} to {row['high']:.3f}"}


def _fractions(rows: Sequence[Row]) -> list[Row]:
    """The rows of figures that are fractions, and so can share a scale; all where none is."""
    others = {row["figure"] for row in rows if row["low"] < 0 or row["high"] > 1}
    return [row for row in rows if row["figure"] not in others] or list(rows)


def _outcome_rows(analysis: Analysis) -> list[Row]:
    return [
        row | {"name": OUTCOME_NAMES[OUTCOMES.index(row["outcome"])], "order": OUTCOMES.index(row["outcome"])}
        for row in analysis.outcomes
    ]


def _groups(breakdown: Breakdown) -> tuple[list[Row], list[str]]:
    """The rows of the largest groups, each with its label, and the labels in order."""
    sizes: dict[str, int] = {}
    for row in breakdown.rows:
        sizes[row["group"]] = max(sizes.get(row["group"], 0), row["n"])
    kept = set(sorted(sizes, key=lambda group: -sizes[group])[:MOST_GROUPS])
    shown = [group for group in sizes if group in kept]
    labels = dict(zip(shown, distinct([f"{group} ({sizes[group]:,})" for group in shown]), strict=True))
    rows = [_told(row) | {"label": labels[row["group"]]} for row in breakdown.rows if row["group"] in kept]
    return rows, list(labels.values())


def _pair(row: Row) -> Row:
    interval = f"{row['low']:+.3f} to {row['high']:+.3f}"
    return row | {"pair": f"{row['first']}\n− {row['second']}", "interval": interval}
