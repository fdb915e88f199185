"""What a report says of a section's runs in numbers: plain rows, for the tables, the charts and the data file alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from qabench.evaluation import Evaluation, Record
from qabench.report.comparison import compare_runs
from qabench.report.names import OUTCOMES, headline, headline_of, natural, outcome
from qabench.report.sections import Section
from qabench.runs.figures import by_group, figures, groupings
from qabench.scoring.answer_components import AnswerComponentScores
from qabench.stats import Interval, bootstrap_mean

Row = dict[str, Any]
ERROR_TYPE = "error type"


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Figures by group: rows of run, group, n (of ``unit``), figure, mean, low, high."""

    name: str
    unit: str
    rows: Sequence[Row]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The numbers of a section; means are in the figures' own units, intervals at 95 %.

    Attributes:
        scores: rows of run, n, figure, mean, low, high.
        outcomes: rows of run, outcome, n, share: what became of the questions.
        breakdowns: by each grouping; of FELM also by the type of the errors.
        curves: of fastbook, rows of run, figure, k, n, mean, low, high. notes: what the curves leave out.
        pairs: of each two runs, rows of figure, first, second, difference, low, high, p, corrected_p, wins, ties,
            losses, significant, n (common questions).
    """

    scores: Sequence[Row]
    outcomes: Sequence[Row]
    breakdowns: Sequence[Breakdown]
    curves: Sequence[Row] = ()
    curve_notes: Sequence[str] = ()
    pairs: Sequence[Row] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The numbers as JSON data."""
        return asdict(self)


def analyse(section: Section) -> Analysis:
    """All numbers of a section; takes some hundredths of a second for each figure, run and group."""
    curves, notes = _curves(section.runs)
    return Analysis(
        scores=[row for label, run in section.runs.items() for row in _rows(label, figures(run), len(_scored(run)))],
        outcomes=_outcomes(section),
        breakdowns=_breakdowns(section),
        curves=curves,
        curve_notes=notes,
        pairs=compare_runs(section),
    )


def _scored(run: Evaluation) -> list[Record]:
    return [record for record in run.records if record.scores]


def _rows(label: str, found: Mapping[str, Interval], n: int, **more: Any) -> list[Row]:
    return [
        {"run": label, **more, "n": n, "figure": figure, "mean": one.mean, "low": one.low, "high": one.high}
        for figure, one in found.items()
    ]


def _outcomes(section: Section) -> list[Row]:
    rows = []
    figure = headline_of(section.benchmark, section.runs.values())
    for label, run in section.runs.items():
        found = [outcome(headline(figure, record)) for record in run.records]
        # What is missing has no score either, and shares must not hide it.
        found += ["none"] * (run.expected - len(found))
        rows += [
            {"run": label, "outcome": name, "n": found.count(name), "share": found.count(name) / len(found)}
            for name in OUTCOMES
        ]
    return rows


def _breakdowns(section: Section) -> list[Breakdown]:
    names = dict.fromkeys(name for run in section.runs.values() for name in groupings(run))
    if section.benchmark == "felm":
        names.pop(ERROR_TYPE, None)  # of responses that hold such an error: the errors themselves say more
    found = []
    for name in names:
        rows: list[Row] = []
        for label, run in section.runs.items():
            for group, records in by_group(run, name).items():
                scored = [record for record in records if record.scores]
                rows += _rows(label, figures(run, scored), len(scored), group=group)
        if len({row["group"] for row in rows}) > 1:
            found.append(Breakdown(name, "answers", natural(rows)))
    if section.benchmark == "felm" and (rows := _error_types(section.runs)):
        note = "The share of segments with an error that were found; a segment without a verdict counts as not found."
        found.append(Breakdown(ERROR_TYPE, "errors", rows, note))
    return found


def _error_types(runs: Mapping[str, Evaluation]) -> list[Row]:
    rows = []
    for label, run in runs.items():
        errors: dict[str, list[tuple[str, float]]] = {}
        for record in _scored(run):
            for segment in record.detail.get("segments", ()):
                if not segment["label"]:
                    kind = (segment["type"] or "type not given").replace("_", " ")
                    errors.setdefault(kind, []).append((record.id, float(segment["verdict"] is False)))
        for kind, of in sorted(errors.items(), key=lambda item: -len(item[1])):
            interval = bootstrap_mean([value for _, value in of], clusters=[id for id, _ in of])
            rows += _rows(label, {"recall": interval}, len(of), group=kind)
    return rows


def _curves(runs: Mapping[str, Evaluation]) -> tuple[list[Row], list[str]]:
    """MRR@k and Recall@k over k, from the ranks of the components: the scores of ``qabench.scoring``, for each k."""
    rows: list[Row] = []
    notes = []
    for label, run in runs.items():
        with_ranks = [record for record in run.records if record.detail.get("components")]
        ranks = tuple(tuple(part["rank"] for part in record.detail["components"]) for record in with_ranks)
        cutoffs = tuple(range(1, min((record.detail.get("k", 0) for record in with_ranks), default=0) + 1))
        if not cutoffs:
            continue
        scores = AnswerComponentScores(cutoffs, ranks, ())
        ids = [record.id for record in with_ranks]
        for k in cutoffs:
            values = {"MRR": scores.mrr_per_question(k), "Recall": scores.recall_per_question(k)}
            found = {name: bootstrap_mean([value or 0.0 for value in of], clusters=ids) for name, of in values.items()}
            rows += _rows(label, found, len(ids), k=k)
        parts = [rank for of in ranks for rank in of]
        notes.append(
            f"{label}: {sum(rank is None for rank in parts):,} of {len(parts):,} answer components are not among the "
            f"first {cutoffs[-1]} passages"
        )
    return rows, notes
