"""``qabench sample``: which judged items people should label, as a table to fill in."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qabench.data.rows import grouped
from qabench.errors import InputError, unknown_name
from qabench.evaluation import Evaluation
from qabench.evaluation.judged import JudgedItem, JudgedScore
from qabench.runs.human import judged_scores
from qabench.stats.prediction_powered import expected_width

# Stratify by the judge's verdict.
VERDICT = "verdict"
# Correlations of verdicts and labels, to say how narrow an interval will be: for a judge that
# guesses, and for a good one.
CORRELATIONS = {"if the verdicts say nothing": 0.0, "if verdicts and labels correlate at 0.7": 0.7}
# A variance needs two labels of each group.
MIN_OF_GROUP = 2
# A spreadsheet takes cells that begin with one of these for formulas.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class LabelSample:
    """Items to label.

    Attributes:
        score: the name of the judged score.
        rows: the rows of the table, each without a label unless the item has no answer.
        columns: its columns.
        n: the number of items that were judged for every system.
        labels: the number of items to label, for one system.
        widths: assumption -> the expected width of the interval.
        notes: sentences about the sample.
    """

    score: str
    rows: Sequence[dict[str, str]]
    columns: Sequence[str]
    n: int
    labels: int
    widths: dict[str, float]
    notes: Sequence[str]

    def as_csv(self) -> str:
        """Return the table as CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()


def sample(
    evaluations: Sequence[Evaluation],
    labels: int,
    *,
    seed: int = 0,
    score: str | None = None,
    stratify: str | None = None,
) -> LabelSample:
    """Return a random part of what a judge judged, for people to label.

    For several systems, the same items are drawn: labels on the same questions make the interval of
    the systems' difference narrowest.

    Args:
        evaluations: the evaluations of one or several systems.
        labels: the number of items to label, for each system.
        seed: the seed of the random choice.
        score: the name of a judged score. None for the first.
        stratify: "verdict", or a grouping such as "domain". Equally many items are drawn from each
            group, with weights.

    Raises:
        InputError: nothing is judged, too few or too many labels, an unknown score or grouping, or a
            grouping with one group.
    """
    # Find the items that were judged for every system.
    judged = [_score_of(evaluation, score) for evaluation in evaluations]
    by_id = []
    for judged_score in judged:
        by_id.append({item.id: item for item in judged_score.items})
    first = judged[0]
    several = len(judged) > 1
    ids = [item.id for item in first.items]
    for items in by_id:
        ids = [id for id in ids if id in items]
    if not 2 <= labels <= len(ids):
        judged_items = f"{first.unit} that were judged"
        if several:
            judged_items += " for all systems"
        raise InputError(
            f"--labels is {labels}; allowed: 2 to {len(ids)}, the number of {judged_items}"
        )

    # Draw some of the items. The table has them in the order of the log, not of the draw.
    rng = np.random.default_rng(seed)
    weights = _drawn(ids, by_id[0], labels, stratify, rng)
    columns = ["id", "question", "reference", "answer", "label"]
    if several:
        columns.insert(1, "system")
    if stratify:
        columns.insert(-1, "weight")
    rows = []
    for id in ids:
        if id not in weights:
            continue
        for evaluation, items in zip(evaluations, by_id, strict=True):
            item = items[id]
            row = {
                "id": id,
                "system": evaluation.model,
                "question": _cell(item.question),
                "reference": _cell(item.reference),
                "answer": _cell(item.text),
                "weight": f"{weights[id]:.6g}",
                # Nobody needs to read an empty answer, which is always wrong.
                "label": "" if item.answered else "0",
            }
            rows.append({name: row[name] for name in columns})

    # Say how narrow the interval will be, which depends on how good the judge is.
    share = float(np.mean([item.verdict for item in first.items]))
    widths = {}
    for assumption, correlation in CORRELATIONS.items():
        widths[assumption] = expected_width(len(ids), labels, share, correlation)
    notes = _notes(first, rows, stratify)
    return LabelSample(first.name, rows, columns, len(ids), labels, widths, notes)


def _notes(score: JudgedScore, rows: Sequence[dict[str, str]], stratify: str | None) -> list[str]:
    notes = [f"label: 1 if it is {score.positive}, 0 if not; the judge's verdict is not shown"]
    empty = sum(row["label"] == "0" for row in rows)
    if empty:
        notes.append(f"{empty} rows have no answer, and the label 0")
    if stratify:
        notes.append("the column weight belongs to the label: keep it")
    question_ids = {item.question_id for item in score.items}
    if len(question_ids) < len(score.items):
        notes.append(
            f"{score.unit} of one question resemble each other: the interval can be wider than expected here"
        )
    return notes


def _score_of(evaluation: Evaluation, name: str | None) -> JudgedScore:
    scores = {score.name: score for score in judged_scores(evaluation)}
    if not scores:
        sentence = f"{evaluation.path} has nothing that a judge judged: no score is a mean of verdicts from 0 to 1"
        raise InputError("; ".join([sentence, *evaluation.problems]))
    if name is None:
        return next(iter(scores.values()))
    if name not in scores:
        raise unknown_name(f"{evaluation.path} has no judged score", name, list(scores))
    return scores[name]


def _drawn(
    ids: Sequence[str],
    items: dict[str, JudgedItem],
    labels: int,
    stratify: str | None,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return the drawn ids with their weights: the number of items that each stands for."""
    weights = {}
    if stratify is None:
        for position in rng.permutation(len(ids))[:labels].tolist():
            weights[ids[position]] = len(ids) / labels
        return weights
    strata = grouped((_stratum(items[id], stratify), id) for id in ids)
    if len(strata) < 2:
        raise InputError(f"--stratify {stratify}: all items are in one group; leave the option out")
    sizes = _sizes(list(map(len, strata.values())), labels)
    for members, size in zip(strata.values(), sizes, strict=True):
        for position in rng.permutation(len(members))[:size].tolist():
            weights[members[position]] = len(members) / size
    return weights


def _sizes(totals: Sequence[int], labels: int) -> list[int]:
    """Return how many of each group are drawn: as equally as the groups allow."""
    fewest = sum(min(total, MIN_OF_GROUP) for total in totals)
    if labels < fewest:
        raise InputError(f"--labels is {labels}; {len(totals)} groups need at least {fewest}")
    sizes = [0] * len(totals)
    left = labels
    while left:
        open_groups = [group for group, total in enumerate(totals) if sizes[group] < total]
        # The sort is stable, so if the last labels do not suffice for all groups, the first groups
        # get them.
        for group in sorted(open_groups, key=sizes.__getitem__):
            if left:
                sizes[group] += 1
                left -= 1
    return sizes


def _stratum(item: JudgedItem, stratify: str) -> str:
    if stratify == VERDICT:
        return "yes" if item.verdict >= 0.5 else "no"
    if stratify not in item.groups:
        raise unknown_name("what was judged has no grouping", stratify, [VERDICT, *item.groups])
    # An item of several groups counts in the first one, so that each is drawn at most once.
    return next(iter(item.groups[stratify]), "")


def _cell(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula."""
    if text.startswith(FORMULA_STARTS):
        return f"'{text}"
    return text
