"""Evaluations and comparisons as tables and data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qabench.evaluation.results import undefined_note
from qabench.io.tables import Table

if TYPE_CHECKING:
    from qabench.evaluation.comparison import Comparison
    from qabench.evaluation.evaluation import Evaluation
    from qabench.evaluation.scores import Score

COLUMNS = ["score", "value", "95% interval", "n", "official"]


def records_table(evaluation: Evaluation) -> Any:
    """A pandas DataFrame with one row per record: id, epoch, texts, status, scores, and one column per grouping."""
    import pandas as pd

    rows = [
        {
            "id": record.id,
            "epoch": record.epoch,
            "question": record.question,
            "reference": record.reference,
            "answer": record.answer,
            "status": record.status,
            "problem": record.problem,
            **record.scores,
            **{name: list(groups) for name, groups in record.groups.items()},
            "input_tokens": record.input_tokens,
            "output_tokens": record.output_tokens,
            "seconds": record.seconds,
            "cost": record.cost,
        }
        for record in evaluation.records
    ]
    return pd.DataFrame(rows)


def title(evaluation: Evaluation) -> str:
    """Model, benchmark, config and setting, such as "gpt-4o on fanoutqa dev (closed-book)"."""
    return f"{evaluation.model} on {evaluation.benchmark} {evaluation.config} ({evaluation.setting})"


def scores_table(evaluation: Evaluation) -> Table:
    """One row per score. The notes are the distinct deviations with the scores that they apply to."""
    rows: list[list[Any]] = []
    notes = dict[str, list[str]]()
    scores = evaluation.scores()
    for score in scores.values():
        deviations = evaluation.deviations(score)
        for deviation in deviations:
            notes.setdefault(deviation, []).append(score.metric.title)
        rows.append([score.metric.title, *_value(score), score.size, "no" if deviations else "yes"])
    said = [f"{sentence} ({_listed(titles, len(rows))})" for sentence, titles in notes.items()]
    said += filter(None, [undefined_note({score.metric.title: score.interval for score in scores.values()})])
    if not rows:
        said = [f"no scores: {evaluation.unscored or 'nothing was answered'}"]
    return Table(title(evaluation), COLUMNS, rows, said)


def comparison_tables(compared: Comparison) -> list[Table]:
    """The scores of the systems, and the pairs."""
    rows: list[list[Any]] = []
    for label, score in compared.systems.items():
        rows.append([label, *_value(score), f"{score.interval.standard_error:.4f}", score.n])
    metric = compared.metric
    columns = ["system", metric.name, "95% interval", "standard error", f"n ({metric.unit})"]
    pairs: list[list[Any]] = []
    for pair in compared.pairs:
        of = pair.difference.interval
        verdict = f"{pair.first} is better" if pair.significant else "no significant difference"
        numbers = [f"{of.mean:+.4f}", f"{of.low:+.4f} to {of.high:+.4f}", f"{pair.difference.p_value:.4f}"]
        counts = [f"{pair.corrected_p:.4f}", pair.wins, pair.ties, pair.losses]
        pairs.append([f"{pair.first} - {pair.second}", verdict, *numbers, *counts])
    names = ["pair", "at 5%", "difference", "95% interval", "p", "corrected p", "wins", "ties", "losses"]
    undefined = undefined_note({label: score.interval for label, score in compared.systems.items()})
    differences = {f"{pair.first} - {pair.second}": pair.difference.interval for pair in compared.pairs}
    notes = [compared.about(), *filter(None, [undefined_note(differences)])]
    return [Table(metric.title, columns, rows, [undefined] if undefined else []), Table("Pairs", names, pairs, notes)]


def _value(score: Score) -> list[str]:
    found = score.interval
    return [f"{found.mean:.4f}", f"{found.low:.4f} to {found.high:.4f}"]


def _listed(titles: list[str], all_scores: int) -> str:
    return "all scores" if len(titles) == all_scores else ", ".join(titles)
