"""Tables of comparisons for terminals, notebooks and pages: scores, pairs, and corrected scores."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.evaluation.compared import ComparedSystems, by_place, score_names, shown_comparisons
from qabench.evaluation.groupings import distinct_grouping_sentences
from qabench.evaluation.judged import pair_table
from qabench.evaluation.labels import with_systems
from qabench.evaluation.notes import notes_of
from qabench.evaluation.number_form import PLAIN, NumberForm
from qabench.evaluation.pairs import PAIR_COLUMNS
from qabench.evaluation.tables import correction_tables
from qabench.io.tables import Table

# Notes that say how to show all scores if some are hidden, on the command line and in Python. {}
# stands for the number of all scores.
COMMAND_HINT = "--all-scores prints {} scores"
PYTHON_HINT = "score_tables(all_scores=True) and to_pandas() have {} scores"


def comparison_tables(
    comparisons: Sequence[ComparedSystems],
    form: NumberForm = PLAIN,
    all_scores: bool = False,
    hint: str = COMMAND_HINT,
) -> list[Table]:
    """Return tables of scores and of differences, first on all questions, then on groups.

    Args:
        comparisons: at least one.
        form: how scores are printed.
        all_scores: whether scores that are not main scores are shown, too.
        hint: the note to add if some scores are hidden. {} stands for the number of all scores.
    """
    shown = shown_comparisons(comparisons, all_scores)
    tasks = {comparison.questions for comparison in shown}
    tables: list[Table] = []
    for (questions, grouping), members in by_place(shown).items():
        before = after = ""
        if len(tasks) > 1 and questions:
            # Otherwise, tables of several tasks would have equal headings.
            before = f"{questions}: "
        if grouping:
            after = f", by {grouping}"
        tables.append(_score_table(members, before, after, form))
        tables.append(_pair_table(members, before, after, form))
    for comparison in shown:
        tables += corrected_tables(comparison)
    score_count = len(score_names(comparisons))
    if score_count > len(score_names(shown)):
        tables[0].notes.append(hint.format(score_count))
    return tables


def corrected_tables(comparison: ComparedSystems) -> list[Table]:
    """Return the tables of values corrected by human labels, or [] if there are none."""
    if not comparison.corrected:
        return []
    evaluations = comparison.evaluations
    tables = correction_tables(list(evaluations.values()), list(evaluations))
    return [*tables, pair_table(comparison.corrected)]


def sentences_about_systems(comparison: ComparedSystems) -> list[str]:
    """Return the notes about the systems. A note that several share is given once."""
    sentences = {}
    for label, evaluation in comparison.evaluations.items():
        notes = notes_of(evaluation)
        # Signatures are too long for a terminal.
        sentences[label] = [note.text for note in notes if note.kind != "signature"]
    return [systems + text for systems, text in with_systems(sentences)]


def fitting_form(comparison: ComparedSystems, form: NumberForm) -> NumberForm:
    """Return the form in which numbers of a comparison are printed."""
    return form.fitting(score.spec for score in comparison.systems.values())


def _score_table(
    comparisons: Sequence[ComparedSystems], before: str, after: str, form: NumberForm
) -> Table:
    """Return the table of the scores of some comparisons on the same questions or grouping.

    A single score is named in the heading, several scores are named in the first column.

    Args:
        comparisons: at least one.
        before: the start of the heading.
        after: the end of the heading.
        form: how scores are printed.
    """
    first = comparisons[0]
    with_score = len(score_names(comparisons)) > 1
    title, value = first.spec.title, first.spec.name
    if with_score:
        title, value = "Scores", "value"
    columns = [
        *_name_columns(first.grouping, with_score),
        "system",
        value,
        "95% interval",
        "standard error",
        "n",
    ]
    table = Table(f"{before}{title}{after}", columns, [])
    for comparison in comparisons:
        names = _names(comparison, with_score)
        own_form = fitting_form(comparison, form)
        for label, score in comparison.systems.items():
            cells = [
                label,
                own_form.number(score.value) + own_form.unit,
                own_form.bounds(score.interval),
                own_form.number(score.interval.standard_error) + own_form.unit,
                score.size,
            ]
            table.rows.append([*names, *cells])
    if first.grouping:
        table.notes.extend(distinct_grouping_sentences(first.evaluations.values(), first.grouping))
    return table


def _pair_table(
    comparisons: Sequence[ComparedSystems], before: str, after: str, form: NumberForm
) -> Table:
    """Return the table of the pairs of some comparisons. See ``_score_table``."""
    first = comparisons[0]
    with_score = len(score_names(comparisons)) > 1
    columns = [*_name_columns(first.grouping, with_score), *PAIR_COLUMNS]
    table = Table(f"{before}Pairs{after}", columns, [])
    places_by_note: dict[str, list[str]] = {}
    for comparison in comparisons:
        names = _names(comparison, with_score)
        own_form = fitting_form(comparison, form)
        for pair in comparison.pairs:
            table.rows.append([*names, *pair.cells(own_form)])
            if note := pair.about_questions(own_form):
                places_by_note.setdefault(note, []).append(", ".join(names))
    for note, places in places_by_note.items():
        # The names of scores and groups are only needed in notes about some of the rows.
        if len(places) != len(comparisons):
            note = f"{'; '.join(places)}: {note}"
        table.notes.append(note)
    table.notes.append(first.about())
    return table


def _name_columns(grouping: str, with_score: bool) -> list[str]:
    """Return the heads of the columns before the column of systems. See ``_names``."""
    columns = []
    if with_score:
        columns.append("score")
    if grouping:
        columns.append(grouping)
    return columns


def _names(comparison: ComparedSystems, with_score: bool) -> list[str]:
    """Return the first cells of a comparison's rows: its score and its group."""
    names = []
    if with_score:
        names.append(comparison.spec.name)
    if comparison.group:
        names.append(comparison.group[1])
    return names
