"""Tables of scores: of one or several evaluations, and of the groups of a grouping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qabench.data.rows import natural_key
from qabench.evaluation.deviations import deviations_of
from qabench.evaluation.groupings import distinct_grouping_sentences
from qabench.evaluation.number_form import PLAIN, NumberForm
from qabench.evaluation.records import Score
from qabench.evaluation.score_spec import present
from qabench.evaluation.scored import ScoredRecords
from qabench.io.tables import UNDEFINED, Table


def score_table(
    evaluations: Sequence[ScoredRecords],
    labels: Sequence[str],
    all_scores: bool = True,
    form: NumberForm = PLAIN,
) -> Table:
    """Return a table with one row per score and evaluation of a config.

    Without ``all_scores``, it has main scores only. For a single evaluation, a note counts its
    records by status.
    """
    first = evaluations[0]
    several = len(evaluations) > 1
    # The scores that any of the evaluations has.
    scores: dict[str, Score] = {}
    for evaluation in evaluations:
        scores |= evaluation.scores()
    shown = shown_scores(scores, all_scores)
    rows: list[list[Any]] = []
    for name in shown:
        own_scores = [evaluation.scores().get(name) for evaluation in evaluations]
        own_form = form.fitting(score.spec for score in own_scores if score)
        for label, evaluation, score in zip(labels, evaluations, own_scores, strict=True):
            if score:
                row = [name, *_value(score, own_form), score.size]
            elif name in evaluation.undefined():
                row = [name, UNDEFINED, "", ""]
            else:
                continue
            if first.benchmark:
                is_official = score and not deviations_of(evaluation, score)
                row.append("yes" if is_official else "no")
            if several:
                row.insert(1, label)
            rows.append(row)
    title = first.title
    columns = ["score", "value", "95% interval", "n"]
    if first.benchmark:
        # The scores of other tasks are neither official nor unofficial.
        columns.append("official")
    if several:
        title = first.questions
        columns.insert(1, "system")
    table = Table(title, columns, rows)
    if not several:
        counts = [f"{count} {status}" for status, count in first.counts().items() if count]
        table.notes.append(", ".join(counts))
        if reason := first.why_unscored():
            table.notes.append(f"no scores: {reason}")
    if len(shown) < len(scores):
        table.notes.append(f"--all-scores prints {len(scores)} scores")
    return table


def _value(score: Score, form: NumberForm) -> list[str]:
    """Return a score's value and interval as cells."""
    return [form.number(score.value) + form.unit, form.bounds(score.interval)]


def correction_tables(evaluations: Sequence[ScoredRecords], labels: Sequence[str]) -> list[Table]:
    """Return the table of corrected scores, or [] if no evaluation has any."""
    by_label = {}
    for label, evaluation in zip(labels, evaluations, strict=True):
        if evaluation.corrections:
            by_label[label] = evaluation.corrections
    if not by_label:
        return []
    # Imported here because this module imports NumPy, which is slow and which some commands do not
    # need.
    from qabench.evaluation.judged import correction_table

    return [correction_table(by_label)]


def group_table(
    evaluations: Sequence[ScoredRecords],
    labels: Sequence[str],
    grouping: str,
    heading: str,
    all_scores: bool,
    form: NumberForm = PLAIN,
) -> Table:
    """Return a table with one row per score and group of a grouping, such as "category".

    If there are several systems, each has one column with values and intervals, so that a group's
    scores are side by side. A cell is empty if the system does not have the score or the group.
    """
    scores_by_group = [evaluation.scores_by_group(grouping) for evaluation in evaluations]
    members: dict[str, list[int]] = {}
    for evaluation in evaluations:
        for group, records in evaluation.by_group(grouping).items():
            members.setdefault(group, []).append(len(records))
    rows: list[list[Any]] = []
    for name in _names_by_group(evaluations, grouping, all_scores):
        specs = []
        for groups in scores_by_group:
            specs += [scores[name].spec for scores in groups.values() if name in scores]
        # All rows of a score are printed in one form, so that they can be compared.
        own_form = form.fitting(specs)
        for group in sorted(members, key=natural_key):
            cells: list[Any] = []
            if len(evaluations) == 1:
                # A single evaluation has columns for the value, the interval and n.
                score = scores_by_group[0].get(group, {}).get(name)
                cells = [UNDEFINED, "", ""]
                if score:
                    cells = [*_value(score, own_form), score.size]
            else:
                for evaluation, groups in zip(evaluations, scores_by_group, strict=True):
                    score = groups.get(group, {}).get(name)
                    cells.append(_group_cell(evaluation, name, grouping, group, score, own_form))
            rows.append([name, group, _range(members[group]), *cells])
    columns = ["score", grouping, "records", "value", "95% interval", "n"]
    if len(evaluations) > 1:
        columns = ["score", grouping, "records", *labels]
    return Table(heading, columns, rows, distinct_grouping_sentences(evaluations, grouping))


def _group_cell(
    evaluation: ScoredRecords,
    name: str,
    grouping: str,
    group: str,
    score: Score | None,
    form: NumberForm,
) -> str | None:
    """Return a system's value and interval in one cell. None if it lacks the score or the group."""
    if score:
        value, bounds = _value(score, form)
        return f"{value} ({bounds})"
    if _has(evaluation, name, grouping, group):
        return UNDEFINED
    return None


def _has(evaluation: ScoredRecords, name: str, grouping: str, group: str) -> bool:
    """Return whether an evaluation has the group and the score, which may be undefined."""
    specs = present(evaluation.score_specs, list(evaluation.columns().values))
    is_scored = any(spec.name == name for spec in specs)
    return is_scored and group in evaluation.by_group(grouping)


def _names_by_group(
    evaluations: Sequence[ScoredRecords], grouping: str, all_scores: bool
) -> list[str]:
    """Return the names of scores that at least one group has, in the benchmark's order."""
    by_name: dict[str, Score] = {}
    in_order: dict[str, None] = {}
    for evaluation in evaluations:
        for scores in evaluation.scores_by_group(grouping).values():
            by_name |= scores
        # Undefined scores are in the order, too, because a score that is undefined on all records
        # may be defined on a group.
        specs = present(evaluation.score_specs, list(evaluation.columns().values))
        in_order |= dict.fromkeys(spec.name for spec in specs)
    scores = {name: by_name[name] for name in in_order if name in by_name}
    return list(shown_scores(scores, all_scores))


def _range(numbers: Sequence[int]) -> int | str:
    """Return the number if all are equal, or else a text with the smallest and the largest one."""
    least, most = min(numbers), max(numbers)
    if least == most:
        return least
    return f"{least:,} to {most:,}"


def shown_scores(scores: dict[str, Score], all_scores: bool) -> dict[str, Score]:
    """Return the scores that tables show: the main ones, or all of them."""
    main = {name: score for name, score in scores.items() if score.spec.main}
    if all_scores or not main:
        # Without a main score, the table would be empty.
        return scores
    return main
