"""What commands print and write of evaluations: tables, JSON, CSV, documents, and notes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path

from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.output import print_json, print_table, print_tables, say, say_on_stderr
from qabench.data.rows import Json, grouped
from qabench.errors import unknown_name
from qabench.evaluation import Evaluation
from qabench.evaluation.labels import labels, with_systems
from qabench.evaluation.notes import Note, notes_of
from qabench.evaluation.number_form import PLAIN, NumberForm
from qabench.evaluation.number_rows import OF_SCORES, number_table, rows_of_scores
from qabench.evaluation.tables import correction_tables, group_table, score_table, shown_scores
from qabench.io.files import write_json, write_text
from qabench.io.redaction import write_document
from qabench.runs.sources import Evaluations

# Formats that show the tables of a paper.
DOCUMENTS = ("markdown", "latex")
# The fields of a record in the output for single items.
PER_ITEM = ("id", "epoch", "status", "problem", "scores", "detail")
STYLES = {
    "unscored": "bold red",
    "problem": "yellow",
    "note": "",
    "deviation": "bold red",
    "signature": "dim",
}


def show(
    sources: Evaluations,
    format: str,
    *,
    by: Sequence[str] = (),
    output: Path | None = None,
    all_scores: bool = False,
    per_item: Path | None = None,
    form: NumberForm = PLAIN,
    score_only: bool = False,
    short_signatures: bool = False,
) -> None:
    """Write and print evaluations as the options of a command say.

    Files are written first: if the reader of standard output stops early, as ``head`` does, they
    are complete.
    """
    evaluations = sources.evaluations
    if by:
        for evaluation in evaluations:
            _check_groupings(evaluation, by)
    document: Json = {}
    if output or format == "json":
        documents = [json_document(evaluation, by) for evaluation in evaluations]
        document = {"evaluations": documents, "notes": list(sources.notes)}
    if output:
        write_json(output, document)
    if per_item:
        write_text(per_item, per_item_lines(evaluations))
    if format == "json":
        print_json(document)
    elif score_only:
        write_document("".join(map(_numbers_line, evaluations, repeat(all_scores), repeat(form))))
    elif format == "csv":
        rows: list[Json] = []
        for group in _by_config(evaluations):
            rows += rows_of_scores(group, labels(group), by)
        print_table(number_table(rows, OF_SCORES), "csv")
    else:
        print_evaluations(evaluations, by, format, all_scores, form)
    # Notes are printed below a table. Otherwise a program may read standard output.
    on_stderr = score_only or format != "table"
    print_notes(evaluations, sources.notes, on_stderr, short_signatures)


def _check_groupings(evaluation: Evaluation, names: Sequence[str]) -> None:
    """Raise InputError if an evaluation lacks one of these groupings."""
    allowed = evaluation.groupings()
    for name in names:
        if name not in allowed:
            config = f"{benchmark_of(evaluation.benchmark).title} {evaluation.config}"
            raise unknown_name(f"{config} has no grouping", name, allowed)


def per_item_lines(evaluations: list[Evaluation]) -> str:
    """Return one JSON line per record: system, id, epoch, status, problem, scores, detail."""
    lines = []
    for evaluation in evaluations:
        for record in evaluation.records:
            row = {"system": evaluation.name}
            row |= {name: getattr(record, name) for name in PER_ITEM}
            lines.append(json.dumps(row) + "\n")
    return "".join(lines)


def json_document(evaluation: Evaluation, by: Sequence[str] = ()) -> Json:
    """Return an evaluation as JSON data. "official" has what the authors' scorer would print."""
    benchmark = benchmark_of(evaluation.benchmark)
    document = evaluation.as_dict(by) | {"official": None}
    if evaluation.answered and (shape := benchmark.report().official_shape(evaluation)):
        document["official"] = shape
    return document


def is_official(evaluation: Evaluation) -> bool:
    """Tell whether there are scores that the authors report, and none of these deviates."""
    reported = [score for score in evaluation.scores().values() if score.spec.official]
    return bool(reported) and not any(map(evaluation.deviations, reported))


def _numbers_line(evaluation: Evaluation, all_scores: bool, form: NumberForm) -> str:
    """Return the values of the shown scores of an evaluation as one line."""
    scores = shown_scores(evaluation.scores(), all_scores).values()
    numbers = [form.fitting([score.spec]).number(score.value) for score in scores]
    return " ".join(numbers) + "\n"


def print_evaluations(
    evaluations: Sequence[Evaluation],
    by: Sequence[str],
    format: str,
    all_scores: bool = False,
    form: NumberForm = PLAIN,
) -> None:
    """Print the scores, and then the groups.

    In a terminal, each config has a table with one row per score and evaluation. For documents, the
    scores are columns.
    """
    if format in DOCUMENTS:
        # Imported here because it imports NumPy.
        from qabench.evaluation.score_papers import paper_tables

        scored = [evaluation for evaluation in evaluations if evaluation.scores()]
        papers = paper_tables(scored, by, form, all_scores, titles(evaluations))
        texts = [paper.formatted(format) for paper in papers]
        for group in _by_config(evaluations):
            for table in correction_tables(group, labels(group)):
                texts.append(table.formatted(format))
        write_document("\n".join(texts))
        return
    tables = []
    for group in _by_config(evaluations):
        names = labels(group)
        if any(evaluation.scores() for evaluation in group):
            tables.append(score_table(group, names, all_scores, form))
            tables += correction_tables(group, names)
        for grouping in by:
            heading = f"By {benchmark_of(group[0].benchmark).groupings.get(grouping, grouping)}"
            if len(_by_config(evaluations)) > 1:
                heading += f", {group[0].questions}"
            tables.append(group_table(group, names, grouping, heading, all_scores, form))
    print_tables(tables, format)


def titles(evaluations: Sequence[Evaluation]) -> dict[str, str]:
    """Return the titles of the evaluations' benchmarks by name."""
    titles = {}
    for evaluation in evaluations:
        # The placeholder for tasks of other packages has no name and no title.
        if evaluation.benchmark:
            titles[evaluation.benchmark] = benchmark_of(evaluation.benchmark).title
    return titles


def _by_config(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    """Return lists of evaluations on the same questions, which share tables."""
    return list(grouped((evaluation.questions, evaluation) for evaluation in evaluations).values())


def print_notes(
    evaluations: Sequence[Evaluation],
    notes: Sequence[str],
    on_stderr: bool = False,
    short_signatures: bool = False,
) -> None:
    """Print problems, deviations and signatures, and then the notes."""
    write = say_on_stderr if on_stderr else say
    notes_by_system = {}
    for label, evaluation in zip(labels(evaluations), evaluations, strict=True):
        notes_by_system[label] = _notes_of(evaluation, short_signatures)
    # Systems with the same note share one line, which names them.
    lines = with_systems(notes_by_system)
    for systems, (text, style) in lines:
        write(systems + text, style)
    # A comparison's notes repeat the notes of its logs of other tasks, which are printed already.
    printed = {systems + text for systems, (text, _) in lines}
    for note in notes:
        if note not in printed:
            write(note, "yellow")


def _notes_of(evaluation: Evaluation, short_signatures: bool) -> list[tuple[str, str]]:
    """Return the notes about an evaluation as pairs of text and style."""
    notes = notes_of(evaluation)
    if short_signatures:
        notes = [note for note in notes if note.kind != "signature"]
        # Without scores, there is nothing that a signature could describe.
        if not evaluation.why_unscored():
            for group, line in evaluation.short_signatures().items():
                notes.append(Note("signature", f"{group}: {line}"))
    return [(note.text, STYLES[note.kind]) for note in notes]
