"""The tables of ``qabench score`` for a paper: systems on one or several configs, or on groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qabench.data.rows import grouped, natural_key
from qabench.errors import InputError
from qabench.evaluation.comparison import compare, compare_groups
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.groupings import distinct_grouping_sentences
from qabench.evaluation.labels import labels
from qabench.evaluation.matching import matched
from qabench.evaluation.number_form import PLAIN, NumberForm
from qabench.evaluation.paper import (
    PaperTable,
    label_of,
    over_title,
    paper_table,
    with_groups,
)
from qabench.evaluation.paper_content import Marks, PaperColumn
from qabench.evaluation.records import Score
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.tables import shown_scores

Systems = Mapping[str, Evaluation]


def paper_tables(
    evaluations: Sequence[Evaluation],
    by: Sequence[str] = (),
    form: NumberForm = PLAIN,
    all_scores: bool = False,
    titles: Mapping[str, str] | None = None,
) -> list[PaperTable]:
    """Return the scores as tables for a paper.

    Configs that have a system in common share a table, with their scores side by side. Differences
    are tested as ``qabench compare`` does by default. Groups have one table per score.

    Args:
        evaluations: the evaluations, of any benchmarks and configs.
        by: groupings, such as "domain".
        form: how scores are printed.
        all_scores: whether scores that are not main scores are shown, too.
        titles: benchmark -> its title.
    """
    by_questions = grouped((evaluation.questions, evaluation) for evaluation in evaluations)
    configs = []
    for members in by_questions.values():
        # Labels only have to tell apart the systems on one config, so they are made per config.
        configs.append(dict(zip(labels(members), members, strict=True)))
    tables: list[PaperTable] = []
    for together in _with_common_systems(configs):
        columns: list[PaperColumn] = []
        systems: dict[str, list[Evaluation]] = {}
        for config in together:
            over = ""
            if len(together) > 1:
                # With one config, the caption names it instead.
                over = over_title(next(iter(config.values())), titles or {})
            for spec in _specs(config, all_scores):
                columns.append(replace(_column(config, spec), over=over))
            for label, evaluation in config.items():
                systems.setdefault(label, []).append(evaluation)
        if columns:
            tables.append(paper_table(columns, systems, form, titles))
        for config in together:
            for grouping in by:
                tables += _group_tables(config, grouping, form, all_scores, titles)
    return tables


def _with_common_systems(configs: Sequence[Systems]) -> list[list[Systems]]:
    """Group configs that share a system, directly or through another, into tables."""
    tables: list[list[Systems]] = []
    for config in configs:
        # A config may connect several tables. They become one table, in the place of the first.
        joined: list[Systems] = []
        separate: list[list[Systems]] = []
        place = len(tables)
        for table in tables:
            if all(config.keys().isdisjoint(systems) for systems in table):
                separate.append(table)
            else:
                place = min(place, len(separate))
                joined += table
        separate.insert(place, [*joined, config])
        tables = separate
    return tables


def _specs(systems: Systems, all_scores: bool) -> list[ScoreSpec]:
    """Return the scores to show, of all scores that at least one system has."""
    scores: dict[str, Score] = {}
    for evaluation in systems.values():
        scores |= evaluation.scores()
    return [score.spec for score in shown_scores(scores, all_scores).values()]


def _column(systems: Systems, spec: ScoreSpec) -> PaperColumn:
    """Return the scores of the systems as a column, with marks if they can be compared."""
    scores = {}
    for label, evaluation in systems.items():
        if score := evaluation.scores().get(spec.name):
            scores[label] = score
    comparable = _comparable(systems)
    if len(scores) < 2 or comparable is None:
        return PaperColumn(spec, scores)
    return PaperColumn(spec, scores, compare(comparable, spec).marks())


def _comparable(systems: Systems) -> Systems | None:
    """Return the systems with matched questions, or None if they cannot be compared.

    The questions of qabench's benchmarks have the same ids in all logs. Only the questions in logs
    of other tasks need to be matched.
    """
    evaluations = list(systems.values())
    if evaluations[0].benchmark:
        return systems
    try:
        return dict(zip(systems, matched(evaluations), strict=True))
    except InputError:
        # These are different tasks, in which equal ids are different questions.
        return None


def _group_tables(
    systems: Systems,
    grouping: str,
    form: NumberForm,
    all_scores: bool,
    titles: Mapping[str, str] | None,
) -> list[PaperTable]:
    """Return one table per score, with a column for all questions and one for each group."""
    overlaps = distinct_grouping_sentences(systems.values(), grouping)
    by_label = {label: [evaluation] for label, evaluation in systems.items()}
    comparable = _comparable(systems)
    tables = []
    for spec in _specs(systems, all_scores):
        marks: dict[str, Marks] = {}
        if comparable is not None:
            for comparison in compare_groups(comparable, spec, grouping):
                _, group = comparison.group or ("", "")
                marks[group] = comparison.marks()
        group_columns: list[PaperColumn] = []
        for group in _groups(systems, grouping):
            scores = _scores_of_group(systems, spec, grouping, group)
            # A group on which no two systems can be compared has no marks.
            group_columns.append(PaperColumn(spec, scores, marks.get(group, Marks()), group))
        columns = with_groups(_column(systems, spec), group_columns)
        sentences = [f"{spec.title} by {grouping}", *overlaps]
        table = paper_table(columns, by_label, form, titles, sentences)
        label = label_of(table.label, spec.name, grouping)
        # The first table has the notes.
        tables.append(replace(table, label=label, notes=()))
    return tables


def _scores_of_group(
    systems: Systems, spec: ScoreSpec, grouping: str, group: str
) -> dict[str, Score]:
    """Return the scores of the systems that have the score and the group."""
    scores = {}
    for label, evaluation in systems.items():
        by_name = evaluation.scores_by_group(grouping).get(group, {})
        if spec.name in by_name:
            scores[label] = by_name[spec.name]
    return scores


def _groups(systems: Systems, grouping: str) -> list[str]:
    """Return the groups of all systems, in the order of their names and numbers."""
    names: set[str] = set()
    for evaluation in systems.values():
        names |= evaluation.by_group(grouping).keys()
    return sorted(names, key=natural_key)
