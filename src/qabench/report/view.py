"""The data of the page: for each section its runs, scores, comparisons, groups and questions, in compact form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from qabench.data.predictions import some
from qabench.data.rows import Json, grouped
from qabench.evaluation import ANSWERED, Evaluation, Record, ScoreSpec
from qabench.evaluation.comparison import Comparison
from qabench.evaluation.records import Score, columns_of, item_score
from qabench.report.analysis import (
    Breakdown,
    Section,
    extra_dict,
    finding,
    single,
)

Row = dict[str, Any]
SHOWN_PROBLEMS = 8  # kinds of problems of a run
# Characters. A page with hundreds of long conversations must still open. The logs have the complete
# text.
LONGEST_TEXT = 20_000
LONGEST_CONVERSATION = 60_000
LONGEST_OF_ALL = 60_000_000
SHORTEST_SHARE = 400


def section_data(section: Section) -> Row:
    """Return what the page's script needs of a section at once: the numbers of its first score, and the questions.

    The numbers of other scores are in ``later_data``, the answers in ``records_of``.
    """
    labels = list(section.runs)
    specs = scored_specs(section)
    names = [spec.name for spec in specs]
    return {
        "key": section.key,
        "title": section.benchmark.title,
        "config": section.config,
        "metrics": list(map(spec_data, specs)),
        "runs": [
            {
                "label": label,
                "setting": run.setting,
                "missing": max(0, run.expected - len(run.records)),
            }
            for label, run in section.runs.items()
        ],
        "scores": {
            name: [_cell(section.scores[label].get(name)) for label in labels] for name in names
        },
        "findings": findings(section),
        "breakdowns": [_breakdown(breakdown) for breakdown in section.breakdowns],
        "extra": [extra_dict(extra) for extra in section.extra],
        "leaderboard": [
            asdict(entry)
            | {"run": None if entry.source == "published" else labels.index(entry.system)}
            for entry in section.leaderboard
        ],
        "columns": {spec.name: spec.title for spec in section.score_specs},
        "groupings": [
            {"key": name, "name": section.grouping_title(name)} for name in section.groupings
        ],
        "questions": [
            {"id": id, "question": shortened(record.question), "groups": dict(record.groups)}
            for id, record in _questions(section).items()
        ],
        "statuses": statuses_of(section),
        "byMetric": _by_metric(section, names[:1] or [""]),
    }


def later_data(section: Section) -> Row:
    """Return what is read when it is needed: references, and the numbers of all scores but the first."""
    references = [shortened(record.reference) for record in _questions(section).values()]
    names = [spec.name for spec in scored_specs(section)]
    return {"references": references, "byMetric": _by_metric(section, names[1:])}


def _by_metric(section: Section, names: Sequence[str]) -> dict[str, Row]:
    """Return by score: comparisons of runs, scores of groups, and each record's own score."""
    labels = list(section.runs)
    specs = {spec.name: spec for spec in section.score_specs}
    by_run = [run.by_id() for run in section.runs.values()]
    questions = [[records.get(id, ()) for records in by_run] for id in _questions(section)]
    return {
        name: {
            "pairs": _pairs(section.comparisons[name], labels)
            if name in section.comparisons
            else None,
            "groups": [_group_scores(breakdown, labels, name) for breakdown in section.breakdowns],
            "marks": [
                [_mark(specs.get(name), records) for records in answers] for answers in questions
            ],
        }
        for name in names
    }


def scored_specs(section: Section) -> list[ScoreSpec]:
    """Return the scores for which at least one run has a score: the headline first, then in the benchmark's order."""
    scored = {name for scores in section.scores.values() for name in scores}
    specs = [spec for spec in section.score_specs if spec.name in scored]
    headline = section.headline.name if section.headline else None
    return sorted(specs, key=lambda spec: headline not in (None, spec.name))


def spec_data(spec: ScoreSpec) -> Row:
    """Return a score for the page's script."""
    fields = ("title", "about", "unit", "official", "graded")
    return {
        "key": spec.name,
        **{field: getattr(spec, field) for field in fields},
        "higher": spec.higher_is_better,
        "item": spec.item_title or spec.title,
    }


def findings(section: Section) -> dict[str, str]:
    """Return the finding in one sentence, by score.

    Under "" if there is no score.
    """
    sentences = {}
    for spec in scored_specs(section):
        name = spec.name
        if name in section.comparisons:
            sentences[name] = finding(section.comparisons[name])
        else:
            pairs = ((label, scores.get(name)) for label, scores in section.scores.items())
            sentences[name] = next(single(label, score) for label, score in pairs if score)
    if not sentences:
        reasons = {run.why_unscored() or "" for run in section.runs.values()}
        sentences[""] = f"There are no scores: {'; '.join(sorted(reasons))}."
    return sentences


def sizes(scores: Mapping[str, Score]) -> list[tuple[str, int]]:
    """Return the distinct pairs of n with its unit and the number of answers left out."""
    return list(dict.fromkeys((score.size, score.left_out) for score in scores.values()))


def evaluation_facts(run: Evaluation) -> Row:
    """Return the cost of a run: tokens, dollars and seconds.

    None where unknown.
    """
    facts: Row = {}
    for name in ("input_tokens", "output_tokens", "cost", "seconds"):
        values = [value for each in run.records if (value := getattr(each, name)) is not None]
        facts[name] = sum(values) if values else None
    return facts


def deviations_of(section: Section) -> list[Row]:
    """Return the distinct deviations, with the scores and the runs that they apply to."""
    places = grouped(
        ((sentence, tuple(names)), label)
        for label, run in section.runs.items()
        for sentence, names in run.deviations_by_sentence().items()
    )
    return [
        {"sentence": sentence, "scores": names, "runs": _some(labels, section)}
        for (sentence, names), labels in places.items()
    ]


def problems_of(section: Section) -> list[tuple[str, list[str]]]:
    """Return the distinct problems, with the runs that have them."""
    runs_by_problem = grouped(
        (problem, label)
        for label, run in section.runs.items()
        for problem in [*_run_problems(run), *run.problem_sentences(SHOWN_PROBLEMS)]
    )
    return [(problem, _some(labels, section)) for problem, labels in runs_by_problem.items()]


def _some(labels: list[str], section: Section) -> list[str]:
    """Return the runs with these labels, of many only the first ones, or [] for all runs."""
    return [] if len(labels) == len(section.runs) else [some(labels)]


def _run_problems(run: Evaluation) -> list[str]:
    sentences = []
    missing = run.expected - len(run.records)
    if run.status != "success":
        sentences.append(f"The run did not finish (status: {run.status}).")
    if missing > 0:
        sentences.append(
            f"{missing:,} of {run.expected:,} answers are missing; continue with "
            f"`qabench run --resume {run.path} --model {run.model}`."
        )
    sentences += run.undefined_sentences()
    if run.unscored:
        sentences.append(f"Nothing is scored: {run.unscored}.")
    return sentences


def _cell(score: Score | None) -> list[float | None] | None:
    if score is None:
        return None
    return [score.interval.mean, score.interval.low, score.interval.high, score.n, score.left_out]


def _pairs(comparison: Comparison, labels: Sequence[str]) -> Row:
    """Return pairs as compact rows of numbers, because a page can have hundreds of them."""
    place = {label: i for i, label in enumerate(labels)}
    rows = []
    for pair in comparison.pairs:
        interval, p_value = pair.difference.interval, pair.difference.p_value
        values = (interval.mean, interval.low, interval.high, p_value, pair.corrected_p)
        numbers = [None if value is None else round(value, 6) for value in values]
        counts = [int(pair.significant), pair.wins, pair.ties, pair.losses, pair.n]
        rows.append([place[pair.first], place[pair.second], *numbers, *counts])
    return {"about": comparison.about(), "rows": rows}


def _breakdown(breakdown: Breakdown) -> Row:
    groups = [{"name": name, "n": questions} for name, questions in breakdown.groups.items()]
    return {"key": breakdown.grouping, "title": breakdown.title, "groups": groups}


def _group_scores(
    breakdown: Breakdown, labels: Sequence[str], spec: str
) -> list[list[list[float | None] | None]]:
    """Return for each run and group the score by a score."""
    by_run = [breakdown.scores.get(label, {}) for label in labels]
    return [
        [_cell(scores.get(name, {}).get(spec)) for name in breakdown.groups] for scores in by_run
    ]


def statuses_of(section: Section) -> list[dict[int, Any]]:
    """Return for each question the runs that did not simply answer: "missing", or the statuses of the epochs."""
    rows: list[dict[int, Any]] = []
    by_run = [run.by_id() for run in section.runs.values()]
    for id in _questions(section):
        statuses = [
            [record.status for record in records.get(id, ())] or "missing" for records in by_run
        ]
        rows.append(
            {run: epochs for run, epochs in enumerate(statuses) if set(epochs) != {ANSWERED}}
        )
    return rows


def _questions(section: Section) -> dict[str, Record]:
    """Return a record of each question."""
    questions: dict[str, Record] = {}
    for run in section.runs.values():
        for record in run.records:
            questions.setdefault(record.id, record)
    return questions


def _mark(spec: ScoreSpec | None, records: Sequence[Record]) -> Any:
    """Return a question's own score by a score: None if there is none, a list for epochs."""
    if spec and spec.reducer:
        rows = [row for record in records if (row := columns_of(spec, record)) is not None]
        score = spec.reducer([row[0] for row in rows])
        return round(score, 4) if isfinite(score) else None
    scores = [item_score(spec, record) if spec else None for record in records]
    marks = [score if score is None else round(score, 4) for score in scores] or [None]
    return marks if len(marks) > 1 else marks[0]


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
        **{
            name: getattr(record, name)
            for name in ("epoch", "status", "problem", "seconds", "cost")
        },
        **{name: bounded(getattr(record, name)) for name in ("answer", "scores", "detail")},
        "messages": [
            [message.role, shortened(message.text, longest)] for message in record.messages
        ],
        "tokens": [record.input_tokens, record.output_tokens],
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
