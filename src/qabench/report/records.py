"""The questions and records of a section as the page's data, in bounded size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from qabench.evaluation import ANSWERED, Metric, Record
from qabench.evaluation.scores import item_score
from qabench.report.outcomes import outcome
from qabench.report.sections import Section

# Characters. A page with hundreds of long conversations must still open; the logs have the complete text.
LONGEST_TEXT = 20_000
LONGEST_CONVERSATION = 60_000
LONGEST_OF_ALL = 60_000_000
SHORTEST_SHARE = 400


def questions_of(section: Section) -> list[dict[str, Any]]:
    """The questions of all runs in order, with their marks in each run.

    Returns:
        id, question, reference, groups, and marks: for each run None (the question is missing) or a list with
        [headline score or None, outcome] for each epoch, and [.., .., status] if the status is not "answered".
    """
    by_run = [run.by_id() for run in section.runs.values()]
    headline = section.headline
    found = []
    for id in dict.fromkeys(id for records in by_run for id in records):
        known = [record for records in by_run for record in records.get(id, ())]
        found.append(
            {
                "id": id,
                "question": shortened(known[0].question),
                "reference": shortened(known[0].reference),
                "groups": {name: list(of) for name, of in known[0].groups.items()},
                "marks": [_marks(headline, records.get(id)) for records in by_run],
            }
        )
    return found


def _marks(headline: Metric | None, records: Sequence[Record] | None) -> list[list[Any]] | None:
    if records is None:
        return None
    marks = []
    for record in records:
        score = item_score(headline, record) if headline else None
        mark: list[Any] = [None if score is None else round(score, 4), outcome(headline, record)]
        marks.append(mark if record.status == ANSWERED else [*mark, record.status])
    return marks


def records_of(section: Section) -> list[dict[str, list[dict[str, Any]]]]:
    """The records of each run by question id, one per epoch."""
    total = sum(len(run.records) for run in section.runs.values())
    share = min(LONGEST_CONVERSATION, LONGEST_OF_ALL // total)
    return [
        {id: [_record(record, share) for record in of] for id, of in run.by_id().items()}
        for run in section.runs.values()
    ]


def _record(record: Record, share: int) -> dict[str, Any]:
    of_each = max(SHORTEST_SHARE, share // max(1, len(record.messages)))
    return {
        "epoch": record.epoch,
        "answer": None if record.answer is None else shortened(record.answer),
        "status": record.status,
        "problem": record.problem,
        "scores": bounded(record.scores),
        "messages": [[message.role, shortened(message.text, of_each)] for message in record.messages],
        "detail": bounded(record.detail),
        "tokens": [record.input_tokens, record.output_tokens],
        "seconds": record.seconds,
        "cost": record.cost,
    }


def bounded(value: Any) -> Any:
    """JSON data with long strings shortened, and None for numbers that JSON does not have (nan, infinite)."""
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
    """The text; for a longer text, its beginning and its end, with a note on the number of characters left out."""
    if len(text) <= longest:
        return text
    head, tail = longest * 3 // 4, longest // 4
    left_out = f"[… {len(text) - head - tail:,} characters are left out here; the log has them …]"
    return f"{text[:head]}\n\n{left_out}\n\n{text[-tail:]}"
