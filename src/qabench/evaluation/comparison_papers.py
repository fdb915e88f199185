"""Comparisons as tables for a paper: scores, groups, pairs, and the marks in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from qabench.evaluation.compared import ComparedSystems, by_place, shown_comparisons
from qabench.evaluation.comparison_tables import (
    comparison_tables,
    corrected_tables,
    fitting_form,
)
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.groupings import distinct_grouping_sentences
from qabench.evaluation.number_form import PLAIN, NumberForm, p_text
from qabench.evaluation.pairs import PAIR_COLUMNS, Pair
from qabench.evaluation.paper import (
    PaperTable,
    label_of,
    over_title,
    paper_table,
    with_groups,
)
from qabench.evaluation.paper_content import Marks, PaperColumn
from qabench.evaluation.paper_latex import floating
from qabench.evaluation.paper_pairs import PairRow, mark_sentence, pairs_latex
from qabench.stats.differences import SIGNIFICANCE
from qabench.stats.units import ROUNDING


def comparison_document(
    comparisons: Sequence[ComparedSystems],
    format: str,
    form: NumberForm = PLAIN,
    all_scores: bool = False,
    titles: Mapping[str, str] | None = None,
) -> str:
    """Return the tables for a paper and the tables of pairs as "latex" or "markdown".

    Args:
        comparisons: at least one. Only the notes of the first one are used.
        format: "latex" or "markdown".
        form: how scores are printed.
        all_scores: whether scores that are not main scores are shown, too.
        titles: benchmark -> its title.
    """
    first = comparisons[0]
    papers = comparison_paper_tables(comparisons, form, all_scores, titles)
    if papers:
        papers[0] = replace(papers[0], notes=[*first.notes, *papers[0].notes])
    texts = [table.formatted(format) for table in papers]
    if format == "latex":
        shown = shown_comparisons(comparisons, all_scores)
        for (_, grouping), members in by_place(shown).items():
            texts += _pairs_in_latex(members, grouping, form, titles or {})
    corrected_titles = {table.title for table in corrected_tables(first)}
    for table in comparison_tables(comparisons, form, all_scores):
        # The tables for a paper do not have the scores that are corrected by human labels.
        is_corrected = table.title in corrected_titles
        has_pairs = PAIR_COLUMNS[0] in table.columns
        if is_corrected and format == "latex":
            texts.append(floating(table, label_of(first.questions, table.title)))
        elif is_corrected or (has_pairs and format != "latex"):
            texts.append(table.formatted(format))
    return "\n".join(texts)


def comparison_paper_tables(
    comparisons: Sequence[ComparedSystems],
    form: NumberForm = PLAIN,
    all_scores: bool = False,
    titles: Mapping[str, str] | None = None,
) -> list[PaperTable]:
    """Return tables for a paper: one per task, and one per score and grouping.

    Args:
        comparisons: at least one.
        form: how scores are printed.
        all_scores: whether scores that are not main scores are shown, too.
        titles: benchmark -> its title.
    """
    # The scores of a task on all of its questions share a table.
    by_task: dict[str, list[ComparedSystems]] = {}
    of_groups: list[ComparedSystems] = []
    for comparison in shown_comparisons(comparisons, all_scores):
        if comparison.group is None:
            by_task.setdefault(comparison.questions, []).append(comparison)
        else:
            of_groups.append(comparison)
    tables: list[PaperTable] = []
    for of_task in by_task.values():
        columns = [paper_column(comparison) for comparison in of_task]
        systems = _evaluations_by_label(of_task)
        tables.append(paper_table(columns, systems, form, titles))
        for comparison in of_task:
            for grouping, members in _members_by_grouping(comparison, of_groups).items():
                group_columns = [paper_column(member) for member in members]
                columns = with_groups(paper_column(comparison), group_columns)
                about = f"{comparison.spec.title} by {grouping}"
                overlaps = distinct_grouping_sentences(comparison.evaluations.values(), grouping)
                table = paper_table(columns, systems, form, titles, [about, *overlaps])
                label = label_of(table.label, comparison.spec.name, grouping)
                # Only the table of all questions gets the notes.
                tables.append(replace(table, label=label, notes=()))
    return tables


def paper_column(comparison: ComparedSystems) -> PaperColumn:
    """Return the scores of the systems as a column of a table for a paper."""
    _, group = comparison.group or ("", "")
    return PaperColumn(comparison.spec, comparison.systems, marks_of(comparison), group=group)


def marks_of(comparison: ComparedSystems) -> Marks:
    """Return the marks of a table for a paper: the best systems, and significant differences.

    Nothing is marked if the systems have scores for different questions, because such scores are
    not comparable.
    """
    baseline = comparison.baseline
    if not comparison.same_questions:
        notes: tuple[str, ...] = ()
        if comparison.pairs:
            notes = ("The systems have scores for different questions, so that none is marked",)
        return Marks(baseline=baseline, notes=notes)
    best = _best_labels(comparison)
    reference = baseline or next(iter(best), "")
    if len(best) == len(comparison.systems):
        # If all systems are equal, none is bold.
        best = []
    better, worse = set(), set()
    # A dict as an ordered set.
    missing: dict[str, None] = {}
    for pair in comparison.pairs:
        if clause := pair.missing():
            missing[clause] = None
        # The first system of a pair is the better one.
        if pair.significant and pair.second == reference:
            better.add(pair.first)
        if pair.significant and pair.first == reference:
            worse.add(pair.second)
    return Marks(
        best=frozenset(best),
        better=frozenset(better),
        worse=frozenset(worse),
        test=comparison.test_sentence(f", p < {SIGNIFICANCE:g}"),
        baseline=baseline,
        notes=tuple(missing),
    )


def _best_labels(comparison: ComparedSystems) -> list[str]:
    """Return the labels of the systems with the best score."""
    values = {label: score.value for label, score in comparison.systems.items()}
    best_of = max if comparison.spec.higher_is_better else min
    best_value = best_of(values.values(), default=0.0)
    # Equal scores may differ in their last digit because of the order of additions. Such systems
    # share the first place.
    return [label for label, value in values.items() if abs(value - best_value) <= ROUNDING]


def _members_by_grouping(
    comparison: ComparedSystems, of_groups: Iterable[ComparedSystems]
) -> dict[str, list[ComparedSystems]]:
    """Return, by grouping, the comparisons on groups with the task and score of ``comparison``."""
    members: dict[str, list[ComparedSystems]] = {}
    for member in of_groups:
        is_of_task = member.questions == comparison.questions
        if is_of_task and member.spec.name == comparison.spec.name:
            members.setdefault(member.grouping, []).append(member)
    return members


def _evaluations_by_label(comparisons: Sequence[ComparedSystems]) -> dict[str, list[Evaluation]]:
    """Return the evaluations by label, in the order of the first comparison."""
    systems: dict[str, list[Evaluation]] = {}
    for comparison in comparisons:
        for label in comparison.systems:
            systems.setdefault(label, [comparison.evaluations[label]])
    return systems


def _pairs_in_latex(
    comparisons: Sequence[ComparedSystems],
    grouping: str,
    form: NumberForm,
    titles: Mapping[str, str],
) -> list[str]:
    """Return the pairs of comparisons as a LaTeX table for a paper, or [] if there are no pairs."""
    first = comparisons[0]
    score_titles = list(dict.fromkeys(comparison.spec.title for comparison in comparisons))
    rows = []
    # A dict as an ordered set.
    notes: dict[str, None] = {}
    are_percents: set[bool] = set()
    for comparison in comparisons:
        own_form = fitting_form(comparison, form)
        names = []
        if len(score_titles) > 1:
            names.append(comparison.spec.title)
        if comparison.group:
            names.append(comparison.group[1])
        part = ", ".join(names)
        for pair in comparison.pairs:
            rows.append(_pair_row(part, pair, own_form))
            are_percents.add(own_form.percent)
            if note := pair.about_questions(own_form):
                if names:
                    note = f"{part}: {note}"
                notes[note] = None
    if not rows:
        return []
    about = "paired differences"
    if len(score_titles) == 1:
        about += f" in {score_titles[0]}"
    if first.evaluations:
        title = over_title(next(iter(first.evaluations.values())), titles)
        about = ": ".join(filter(None, [title, about]))
    if grouping:
        about += f" by {grouping}"
    if len({row.n for row in rows}) == 1:
        about += f", n = {rows[0].n:,} questions"
    differences = "Differences"
    if are_percents == {True}:
        differences += " in percent"
    sentences = [
        about,
        f"{differences} with 95% confidence intervals, which are not corrected",
        f"p: {first.test_sentence()} ({first.resamples:,} resamples, seed {first.seed})",
        mark_sentence(rows),
        "W/T/L: questions on which the first system is better (wins), equal (ties) or worse (losses)",
        *notes,
    ]
    label = label_of(first.questions, grouping, "pairs")
    return [pairs_latex(rows, [f"{sentence}." for sentence in sentences], label)]


def _pair_row(part: str, pair: Pair, form: NumberForm) -> PairRow:
    """Return a pair as a row of a table for a paper. ``part`` names its score and group."""
    interval = pair.difference.interval
    return PairRow(
        part,
        pair.first,
        pair.second,
        form.number(interval.mean, "+"),
        form.brackets(interval, "+"),
        pair.n,
        p_text(pair.corrected_p),
        (pair.wins, pair.ties, pair.losses),
        pair.significant,
    )
