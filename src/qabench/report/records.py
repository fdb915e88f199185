"""The questions and records of a section as the page's data, in bounded size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from qabench.evaluation import ANSWERED, Metric, Record
from qabench.evaluation.evaluation import item_score
from qabench.report.analysis import Section

# Characters. A page with hundreds of long conversations must still open; the logs have the complete text.
LONGEST_TEXT = 20_000
LONGEST_CONVERSATION = 60_000
LONGEST_OF_ALL = 60_000_000
SHORTEST_SHARE = 400


def questions_of(section: Section) -> list[dict[str, Any]]:
    """Return the questions of all runs in order: id, question and groups."""
    return [
        {
            "id": id,
            "question": shortened(record.question),
            "groups": {name: list(groups) for name, groups in record.groups.items()},
        }
        for id, record in _questions(section).items()
    ]


def references_of(section: Section) -> list[str]:
    """Return the references of the questions, in their order."""
    return [shortened(record.reference) for record in _questions(section).values()]


def marks_of(section: Section, metric: Metric | None) -> list[list[Any]]:
    """Return for each question and run the record's own score by a metric: None if there is none, a list for epochs."""
    by_run = [run.by_id() for run in section.runs.values()]
    return [[_mark(metric, records.get(id, ())) for records in by_run] for id in _questions(section)]


def statuses_of(section: Section) -> list[dict[int, Any]]:
    """Return for each question the runs that did not simply answer: "missing", or the statuses of the epochs."""
    rows: list[dict[int, Any]] = []
    by_run = [run.by_id() for run in section.runs.values()]
    for id in _questions(section):
        statuses = [[record.status for record in records.get(id, ())] or "missing" for records in by_run]
        rows.append({run: epochs for run, epochs in enumerate(statuses) if set(epochs) != {ANSWERED}})
    return rows


def _questions(section: Section) -> dict[str, Record]:
    """Return a record of each question."""
    questions: dict[str, Record] = {}
    for run in section.runs.values():
        for record in run.records:
            questions.setdefault(record.id, record)
    return questions


def _mark(metric: Metric | None, records: Sequence[Record]) -> Any:
    scores = [item_score(metric, record) if metric else None for record in records]
    marks = [score if score is None else round(score, 4) for score in scores]
    return marks if len(marks) > 1 else next(iter(marks), None)


def records_of(section: Section) -> list[dict[str, list[dict[str, Any]]]]:
    """Return the records of each run by question id, one per epoch."""
    total = sum(len(run.records) for run in section.runs.values())
    share = min(LONGEST_CONVERSATION, LONGEST_OF_ALL // total)
    return [
        {id: [_record(record, share) for record in records] for id, records in run.by_id().items()}
        for run in section.runs.values()
    ]


def _record(record: Record, share: int) -> dict[str, Any]:
    longest = max(SHORTEST_SHARE, share // max(1, len(record.messages)))
    return {
        "epoch": record.epoch,
        "answer": None if record.answer is None else shortened(record.answer),
        "status": record.status,
        "problem": record.problem,
        "scores": bounded(record.scores),
        "messages": [[message.role, shortened(message.text, longest)] for message in record.messages],
        "detail": bounded(record.detail),
        "tokens": [record.input_tokens, record.output_tokens],
        "seconds": record.seconds,
        "cost": record.cost,
    }


def bounded(value: Any) -> Any:
    """Return JSON data with long strings shortened, and None for numbers that JSON does not have (nan, infinite)."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): bounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [bounded(item) for item in value]
    return value


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return the text; of a longer text, its beginning and its end, with a note on what is left out."""
    if len(text) <= longest:
        return text
    head, tail = longest * 3 // 4, longest // 4
    left_out = f"[… {len(text) - head - tail:,} characters are left out here; the log has them …]"
    return f"{text[:head]}\n\n{left_out}\n\n{text[-tail:]}"
