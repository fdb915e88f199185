"""Evaluations in notebooks and documents: tables of scores as Markdown and HTML, records as a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qabench.evaluation.evaluation import Evaluation

COLUMNS = ("score", "mean", "95% interval", "n", "official")


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


def markdown(evaluation: Evaluation) -> str:
    """A Markdown table with one row per score, and the deviations from the official scores below it."""
    rows, notes = _rows(evaluation)
    lines = [_line(COLUMNS), "|---|---:|---:|---:|---|", *(_line(row) for row in rows)]
    said = "".join(f"\n- {note}" for note in notes)
    return f"{title(evaluation)}\n\n" + "\n".join(lines) + "\n" + (f"{said}\n" if said else "")


def html(evaluation: Evaluation) -> str:
    """The same table as HTML, for notebooks."""
    rows, notes = _rows(evaluation)
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    said = "".join(f"<li>{escape(note)}</li>" for note in notes)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<p>{escape(title(evaluation))}</p>{table}" + (f"<ul>{said}</ul>" if said else "")


def title(evaluation: Evaluation) -> str:
    """Model, benchmark, config and setting, such as "gpt-4o on fanoutqa dev (closed-book)"."""
    return f"{evaluation.model} on {evaluation.benchmark} {evaluation.config} ({evaluation.setting})"


def _rows(evaluation: Evaluation) -> tuple[list[list[str]], list[str]]:
    """Cells of the scores, and each deviation once with the scores that it holds for."""
    rows, notes = [], dict[str, list[str]]()
    for score in evaluation.scores().values():
        deviations = evaluation.deviations(score)
        for deviation in deviations:
            notes.setdefault(deviation, []).append(score.metric.title)
        found = score.interval
        interval = f"{found.low:.4f} to {found.high:.4f}"
        official = "no" if deviations else "yes"
        rows.append([score.metric.title, f"{found.mean:.4f}", interval, f"{score.n:,} {score.metric.unit}", official])
    return rows, [f"{sentence} ({', '.join(titles)})" for sentence, titles in notes.items()]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
