"""The page's data besides report.json: the questions with each run's scores, and the answers.

The deviations, the problems and the sums are for the page's template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any

from qabench.data.rows import Json
from qabench.evaluation import Record, ScoreSpec
from qabench.evaluation.comparison import Comparison
from qabench.evaluation.details import form_data
from qabench.evaluation.deviations import deviation_sentences
from qabench.evaluation.labels import with_systems
from qabench.evaluation.notes import problem_sentences, undefined_sentences
from qabench.evaluation.records import columns_of, item_score
from qabench.evaluation.tables import correction_tables
from qabench.io.tables import Table
from qabench.report.section import Section

# The maximum number of kinds of problems that are shown for a run.
SHOWN_PROBLEMS = 8
# Texts are shortened, because a page with hundreds of long conversations must still open. The logs
# have the complete text. Limits in characters: of one text, of one conversation, and of all
# conversations together. At least ``SHORTEST_SHARE`` characters of each message are kept.
LONGEST_TEXT = 20_000
LONGEST_CONVERSATION = 60_000
LONGEST_OF_ALL = 60_000_000
SHORTEST_SHARE = 400
# Fields of a record that are written into the page unchanged.
PLAIN = ("epoch", "status", "problem", "seconds", "cost", "input_tokens", "output_tokens")


def section_data(section: Section) -> Json:
    """Return what the page's scripts (``static/*.js``) need besides report.json and the answers."""
    specs = section.scored_specs
    comparison = next(iter(section.comparisons.values()), None)
    return {
        "key": section.key,
        "title": section.benchmark.title,
        "metrics": [_metric(spec, section.comparisons.get(spec.name)) for spec in specs],
        "columns": {spec.name: spec.title for spec in section.score_specs},
        "groupings": [
            {"key": name, "name": section.grouping_title(name)} for name in section.groupings
        ],
        # The rows of breakdowns are in report.json already.
        "breakdowns": [breakdown | {"rows": None} for breakdown in section.breakdowns],
        "details": list(map(form_data, section.benchmark.report().details)),
        "tests": comparison.about() if comparison else "",
        "paper": _paper(section),
        "questions": _questions(section, specs),
    }


def _paper(section: Section) -> Json:
    """Return the table of the main scores for a paper, as text in each format that the page offers."""
    table = section.paper_table
    if table is None:
        return {}
    return {"Markdown": table.formatted("markdown"), "LaTeX": table.formatted("latex")}


def _metric(spec: ScoreSpec, comparison: Comparison | None) -> Json:
    """Describe a score for the page. A score ranks systems only if they have the same questions."""
    return {
        "ranks": comparison is not None and comparison.same_questions,
        "key": spec.name,
        "title": spec.title,
        "unit": spec.unit,
        "graded": spec.graded,
        "higher": spec.higher_is_better,
        "item": spec.item_title or spec.title,
    }


def _questions(section: Section, specs: Sequence[ScoreSpec]) -> list[Json]:
    """Return each question with its statuses by run, and its values by score and run ("marks")."""
    by_run = [run.by_id() for run in section.runs.values()]
    ids = dict.fromkeys(chain.from_iterable(by_run))
    rows = []
    for id in ids:
        answers = [records.get(id, []) for records in by_run]
        # The ids come from the runs, so at least one run has the question.
        first = next(chain.from_iterable(answers))
        statuses = []
        for records in answers:
            statuses.append([record.status for record in records])
        marks = []
        for spec in specs:
            marks.append([_marks(spec, records) for records in answers])
        rows.append(
            {
                "id": id,
                "question": shortened(first.question),
                "reference": shortened(first.reference),
                "groups": dict(first.groups),
                "statuses": statuses,
                "marks": marks,
            }
        )
    return rows


def _marks(spec: ScoreSpec, records: Sequence[Record]) -> list[float | None]:
    """Return a question's values of a score: one per epoch, or a single one for pass@k."""
    if not (spec.reducer and records):
        marks: list[float | None] = []
        for record in records:
            score = item_score(spec, record)
            marks.append(None if score is None else round(score, 4))
        return marks
    rows = filter(None, (columns_of(spec, record) for record in records))
    score = spec.reducer([row[0] for row in rows])
    return [round(score, 4) if isfinite(score) else None]


def deviations_of(section: Section) -> list[str]:
    """Return the distinct deviations, with the runs that have them."""
    sentences = {label: deviation_sentences(run) for label, run in section.runs.items()}
    return _lines(sentences)


def corrected_table(section: Section) -> Table | None:
    """Return the judges' scores corrected with people's labels, or None if there are none."""
    tables = correction_tables(list(section.runs.values()), list(section.runs))
    return tables[0] if tables else None


def problems_of(section: Section) -> list[str]:
    """Return the distinct problems, with the runs that have them."""
    sentences = {}
    for label, run in section.runs.items():
        sentences[label] = [*undefined_sentences(run), *problem_sentences(run, SHOWN_PROBLEMS)]
        if reason := run.why_unscored():
            sentences[label].append(f"no scores: {reason}")
        if run.status != "success":
            sentences[label].append(f"the run did not finish ({run.status})")
    return _lines(sentences)


def _lines(sentences: Mapping[str, Sequence[str]]) -> list[str]:
    """Return each distinct sentence once. It begins with the runs that have it, unless all have it."""
    return ["".join(parts) for parts in with_systems(sentences)]


def total(records: Sequence[Record], name: str) -> float | None:
    """Return the sum of a field of records, such as "cost", or None if no record has a value."""
    values = [getattr(record, name) for record in records]
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def records_of(section: Section) -> list[dict[str, list[Json]]]:
    """Return the records of each run by question id, one per epoch."""
    # Every run of a section has records (see ``sections_of``).
    n_records = sum(len(run.records) for run in section.runs.values())
    share = min(LONGEST_CONVERSATION, LONGEST_OF_ALL // n_records)
    records_of_runs = []
    for run in section.runs.values():
        by_id = {}
        for id, records in run.by_id().items():
            by_id[id] = [_record(record, share) for record in records]
        records_of_runs.append(by_id)
    return records_of_runs


def _record(record: Record, share: int) -> Json:
    longest = max(SHORTEST_SHARE, share // max(1, len(record.messages)))
    return {
        **{name: getattr(record, name) for name in PLAIN},
        "answer": bounded(record.answer),
        "scores": bounded(record.scores),
        "detail": bounded(record.detail),
        "messages": [
            [message.role, shortened(message.text, longest)] for message in record.messages
        ],
    }


def bounded(value: Any) -> Any:
    """Return JSON data with long strings shortened, and None for NaN and infinite numbers."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list | tuple):
        return [bounded(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): bounded(item) for key, item in value.items()}
    return value


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text, or the beginning and the end of a longer one, with a note between them."""
    if len(text) <= longest:
        return text
    head, tail = longest * 3 // 4, longest // 4
    left_out = f"[… {len(text) - head - tail:,} characters are left out here; the log has them …]"
    return f"{text[:head]}\n\n{left_out}\n\n{text[-tail:]}"
