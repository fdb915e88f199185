"""The results of retrieval as tables and as JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from qabench.benchmarks.fastbook.study.study import ALL, Outcome, Study
from qabench.io.tables import Table


def tables(study: Study, outcomes: Sequence[Outcome]) -> list[Table]:
    """A table of scores by chapter for each method, and a table of differences if there are several methods."""
    made = [_scores(outcome) for outcome in outcomes]
    if len(outcomes) > 1:
        made.append(_differences(outcomes))
    best = study.ceilings(outcomes[0].k)[ALL]
    limits = " or ".join(f"{value:.4f} {name}" for name, value in best.items())
    made[0].notes.append(
        f"No ranking of these {sum(map(len, study.corpus.values())):,} chunks can exceed {limits}, because the chunks "
        "do not contain all components."
    )
    return made


def as_dict(study: Study, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The results as JSON data."""
    return {
        "benchmark": "fastbook",
        **study.about,
        "chunks": {str(chapter): len(chunks) for chapter, chunks in study.corpus.items()},
        "ceilings": study.ceilings(outcomes[0].k),
        "methods": [outcome.as_dict() for outcome in outcomes],
    }


def _scores(outcome: Outcome) -> Table:
    names = list(outcome.columns)
    lines: list[list[Any]] = []
    for group, by in outcome.intervals.items():
        cells = [
            cell for name in names for cell in (f"{by[name].mean:.4f}", f"{by[name].low:.4f} to {by[name].high:.4f}")
        ]
        chunks = None if group == ALL else len(outcome.study.corpus[int(group)])
        lines.append([group, len(outcome.study.groups[group]), chunks, *cells])
    columns = ["chapter", "questions", "chunks"]
    for name in names:
        columns += [name, "95% interval"]
    return Table(f"fastbook {outcome.study.about['config']}: {label(outcome)}", columns, lines)


def _differences(outcomes: Sequence[Outcome]) -> Table:
    ranked = sorted(outcomes, key=lambda outcome: -outcome.intervals[ALL][next(iter(outcome.columns))].mean)
    lines = []
    for better, worse in pairwise(ranked):
        for name, difference in better.differences(worse).items():
            interval = difference.interval
            bounds = f"{interval.low:+.4f} to {interval.high:+.4f}"
            pair = f"{label(better)} minus {label(worse)}"
            lines.append([pair, name, f"{interval.mean:+.4f}", bounds, f"{difference.p_value:.4f}"])
    columns = ["methods", "score", "difference", "95% interval", "p"]
    return Table("Differences (paired bootstrap over questions)", columns, lines)


def label(outcome: Outcome) -> str:
    """A method and its kind of query, such as "fts on keywords"."""
    return f"{outcome.method.name} on {outcome.method.asks}"
