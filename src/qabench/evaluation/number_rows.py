"""Scores and differences as rows of exact numbers, for ``--format csv`` and other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from qabench.data.rows import Json
from qabench.evaluation.document import document_of
from qabench.evaluation.scored import ScoredRecords
from qabench.io.tables import Table

if TYPE_CHECKING:
    from qabench.evaluation.comparison import Comparison

SCORE, DIFFERENCE = "score", "difference"
CORRECTED_SCORE, CORRECTED_DIFFERENCE = "corrected score", "corrected difference"
PLACE = ("kind", "benchmark", "config", "system", "versus", "grouping", "group", "score")
NUMBERS = ("value", "low", "high", "standard_error", "n")
OF_SCORES = ("unit", "left_out", "official")
OF_PAIRS = ("p", "corrected_p", "detectable", "wins", "ties", "losses", "verdict")


def rows_of_scores(
    evaluations: Sequence[ScoredRecords], labels: Sequence[str], by: Sequence[str] = ()
) -> Iterator[Json]:
    """Yield one row per evaluation, score and group. A score that is undefined has no numbers.

    Args:
        evaluations: the evaluations.
        labels: the label of each.
        by: groupings, such as "category". Their rows come after the rows for all records.
    """
    for label, evaluation in zip(labels, evaluations, strict=True):
        document = document_of(evaluation, by)
        place = {
            "benchmark": document["benchmark"],
            "config": document["config"],
            "system": label,
        }
        for row in _score_rows(document):
            if evaluation.benchmark and row["value"] is not None:
                row["official"] = "no" if document["deviations"][row["score"]] else "yes"
            yield {**place, **row, "unit": document["unit"][row["score"]]}
        for name, corrected in document["corrected"].items():
            yield {**place, "kind": CORRECTED_SCORE, "score": name, **_corrected(corrected)}
        for grouping, groups in document["by"].items():
            for group, numbers in groups.items():
                group_place = {**place, "grouping": grouping, "group": group}
                for row in _score_rows(numbers):
                    yield {**group_place, **row, "unit": document["unit"][row["score"]]}


def rows_of_comparisons(comparisons: Iterable[Comparison]) -> Iterator[Json]:
    """Yield the scores of the systems and the differences of the pairs of each comparison."""
    for comparison in comparisons:
        document = comparison.as_dict()
        place = {
            "benchmark": document["benchmark"],
            "config": document["config"],
            "grouping": document["grouping"],
            "group": document["group"],
            "score": document["metric"],
        }
        for system in document["systems"]:
            yield {**place, "kind": SCORE, **system, "value": system["mean"]}
        for pair in document["pairs"]:
            names = {"system": pair["first"], "versus": pair["second"]}
            yield {**place, "kind": DIFFERENCE, **names, **pair, "value": pair["difference"]}
        corrected = document["corrected"] or {"systems": {}, "pairs": []}
        for label, scores in corrected["systems"].items():
            for name, numbers in scores.items():
                system_place = {**place, "system": label, "score": name}
                yield {**system_place, "kind": CORRECTED_SCORE, **_corrected(numbers)}
        for pair in corrected["pairs"]:
            names = {"system": pair["first"], "versus": pair["second"], "score": pair["score"]}
            yield {**place, "kind": CORRECTED_DIFFERENCE, **names, **_corrected(pair)}


def number_table(rows: Iterable[Json], more_columns: Sequence[str]) -> Table:
    """Return rows as a table: where each number belongs, the numbers, and ``more_columns``."""
    columns = [*PLACE, *NUMBERS, *more_columns]
    cells = []
    for row in rows:
        # Rows of corrected scores, for example, have no p-value.
        cells.append([row.get(name) for name in columns])
    return Table("Scores", columns, cells)


def _score_rows(document: Json) -> Iterator[Json]:
    """Yield the rows of the scores in a document, or in a group of it."""
    for name, value in document["scores"].items():
        interval = document["intervals"][name] or {}
        yield {
            "kind": SCORE,
            "score": name,
            "value": value,
            "low": interval.get("low"),
            "high": interval.get("high"),
            "standard_error": interval.get("standard_error"),
            "n": document["n"][name],
            "left_out": document["left_out"][name],
        }


def _corrected(document: Json) -> Json:
    """Return the numbers of a corrected score or difference, with its value under "value"."""
    numbers = {name: document[name] for name in ("low", "high", "standard_error", "n")}
    return {"value": document["corrected"], **numbers}
