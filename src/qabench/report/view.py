"""The data of the page besides report.json: the questions with the marks of each run, and the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from qabench.data.rows import Json
from qabench.evaluation import Record, ScoreSpec
from qabench.evaluation.evaluation import with_systems
from qabench.evaluation.records import columns_of, item_score
from qabench.report.analysis import Section

Row = dict[str, Any]
SHOWN_PROBLEMS = 8  # kinds of problems of a run
# Characters. A page with hundreds of long conversations must still open. The logs have the complete
# text.
LONGEST_TEXT = 20_000
LONGEST_CONVERSATION = 60_000
LONGEST_OF_ALL = 60_000_000
SHORTEST_SHARE = 400
# Fields of a record that are in the page without a change.
PLAIN = ("epoch", "status", "problem", "seconds", "cost", "input_tokens", "output_tokens")


def section_data(section: Section) -> Row:
    """Return what the page's script needs of a section besides report.json and the answers."""
    specs = section.scored_specs
    comparison = next(iter(section.comparisons.values()), None)
    return {
        "key": section.key,
        "title": section.benchmark.title,
        "metrics": list(map(_metric, specs)),
        "columns": {spec.name: spec.title for spec in section.score_specs},
        "groupings": [{"key": name, "name": section.grouping_title(name)} for name in section.groupings],
        "breakdowns": [each | {"rows": None} for each in section.breakdowns],  # in report.json
        "tests": comparison.about() if comparison else "",
        "questions": _questions(section, specs),
    }


def _metric(spec: ScoreSpec) -> Row:
    return {
        "key": spec.name,
        "title": spec.title,
        "unit": spec.unit,
        "graded": spec.graded,
        "higher": spec.higher_is_better,
        "item": spec.item_title or spec.title,
    }


def _questions(section: Section, specs: Sequence[ScoreSpec]) -> list[Row]:
    """Return each question, with the statuses of its records by run, and their marks by score and run."""
    by_run = [run.by_id() for run in section.runs.values()]
    ids = dict.fromkeys(id for records in by_run for id in records)
    rows = []
    for id in ids:
        answers = [records.get(id, []) for records in by_run]
        first = next(record for records in answers for record in records)
        rows.append(
            {
                "id": id,
                "question": shortened(first.question),
                "reference": shortened(first.reference),
                "groups": dict(first.groups),
                "statuses": [[record.status for record in records] for records in answers],
                "marks": [[_marks(spec, records) for records in answers] for spec in specs],
            }
        )
    return rows


def _marks(spec: ScoreSpec, records: Sequence[Record]) -> list[float | None]:
    """Return a question's own scores: one per epoch, or one for all samples (pass@k)."""
    scores = [item_score(spec, record) for record in records]
    if spec.reducer and records:
        values = filter(None, (columns_of(spec, record) for record in records))
        scores = [spec.reducer([row[0] for row in values])]
    return [None if score is None or not isfinite(score) else round(score, 4) for score in scores]


def deviations_of(section: Section) -> list[str]:
    """Return the distinct deviations, with the runs that have them."""
    sentences = {label: run.deviation_sentences() for label, run in section.runs.items()}
    return list(map("".join, with_systems(sentences)))


def problems_of(section: Section) -> list[str]:
    """Return the distinct problems, with the runs that have them."""
    sentences = {}
    for label, run in section.runs.items():
        sentences[label] = [*run.undefined_sentences(), *run.problem_sentences(SHOWN_PROBLEMS)]
        if reason := run.why_unscored():
            sentences[label].append(f"no scores: {reason}")
        if run.status != "success":
            sentences[label].append(f"the run did not finish ({run.status})")
    return list(map("".join, with_systems(sentences)))


def records_of(section: Section) -> list[dict[str, list[Json]]]:
    """Return the records of each run by question id, one per epoch."""
    total = sum(len(run.records) for run in section.runs.values())
    share = min(LONGEST_CONVERSATION, LONGEST_OF_ALL // total)
    return [
        {id: [_record(record, share) for record in records] for id, records in run.by_id().items()}
        for run in section.runs.values()
    ]


def _record(record: Record, share: int) -> Json:
    longest = max(SHORTEST_SHARE, share // max(1, len(record.messages)))
    return {
        **{name: getattr(record, name) for name in PLAIN},
        "answer": bounded(record.answer),
        "scores": bounded(record.scores),
        "detail": bounded(record.detail),
        "messages": [[each.role, shortened(each.text, longest)] for each in record.messages],
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
    """Return the text.

    Of a longer text, its beginning and its end, with a note on what is left out.
    """
    if len(text) <= longest:
        return text
    head, tail = longest * 3 // 4, longest // 4
    left_out = f"[… {len(text) - head - tail:,} characters are left out here; the log has them …]"
    return f"{text[:head]}\n\n{left_out}\n\n{text[-tail:]}"
