"""Scores that any other tool computed: a table with one row per question and system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any

from qabench.data.tables import TableRow, read_table
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, MISSING, Evaluation, Record
from qabench.evaluation.passes import with_passes
from qabench.evaluation.score_spec import ScoreSpec
from qabench.runs.foreign import changed_at, groups_of, number_of

# The name of task and config in evaluations that are read from a table of scores.
SCORES = "scores"
# Columns that are shown with a question, if the table has them.
TEXTS = ("question", "reference", "answer")


def read_scores(
    path: str | Path,
    scores: Sequence[str],
    *,
    id: str = "id",
    system: str | None = None,
    cluster: str | None = None,
) -> list[Evaluation]:
    """Return the scores in a table (CSV, TSV, Parquet, JSONL) as one evaluation per system.

    Rows that repeat an id are samples of the question. Empty scores are undefined, and left out of
    the mean. Other columns with few short values are groupings.

    Args:
        path: the table.
        scores: the columns with scores: numbers, or yes and no.
        id: the column with the question's id.
        system: the column with the system's name. None if the file has the scores of one system.
        cluster: the column with what the questions of a cluster have in common, such as a passage.

    Raises:
        InputError: the file cannot be read, lacks a column, or has a score that is not a number.
    """
    columns = [id, *scores, *filter(None, (system, cluster))]
    rows = read_table(path, columns)
    name = Path(str(path).removesuffix(".gz")).stem
    by_system: dict[str, list[TableRow]] = {}
    for row in rows:
        name_of_system = _text(row, system) if system else name
        by_system.setdefault(name_of_system, []).append(row)
    evaluations = []
    for own_system, members in by_system.items():
        records = _records(members, id, scores, cluster, frozenset((*columns, *TEXTS)))
        evaluations.append(_evaluation(Path(path), own_system, records, scores, len(by_system) > 1))
    return evaluations


def _records(
    rows: Sequence[TableRow],
    id: str,
    scores: Sequence[str],
    cluster: str | None,
    used_columns: frozenset[str],
) -> list[Record]:
    """Return the rows of a system as records. A repeated id is a further sample of its question."""
    samples: dict[str, int] = {}
    records = []
    for row in rows:
        question = _text(row, id)
        samples[question] = samples.get(question, 0) + 1
        # A row without any score is a missing answer, all of whose scores are undefined.
        stated_scores = {}
        for score in scores:
            value = _score(row, score)
            if value is not None:
                stated_scores[score] = value
        texts = {name: str(row.fields.get(name) or "") for name in TEXTS}
        other_fields = {}
        for column, content in row.fields.items():
            if column not in used_columns:
                other_fields[column] = content
        records.append(
            Record(
                id=question,
                epoch=samples[question],
                question=texts["question"] or question,
                reference=texts["reference"],
                messages=[],
                answer=texts["answer"] or None,
                status=ANSWERED if stated_scores else MISSING,
                problem=None if stated_scores else "the table has no score",
                scores=stated_scores or dict.fromkeys(scores, nan),
                groups=groups_of(other_fields),
                cluster=_text(row, cluster) if cluster else None,
            )
        )
    return records


def _evaluation(
    path: Path, system: str, records: list[Record], scores: Sequence[str], is_one_of_several: bool
) -> Evaluation:
    """Return the evaluation of a system. Raises InputError if a column has no score of the system."""
    specs = []
    for name in scores:
        values = [record.scores.get(name, nan) for record in records]
        stated_values = [value for value in values if not isnan(value)]
        if not stated_values:
            raise InputError(f"{path}: the column {name!r} has no score of {system}")
        # A table does not declare the range of a score.
        is_share = all(0 <= value <= 1 for value in stated_values)
        spec = ScoreSpec(name, name, "As in the table.", name, graded=is_share, share=is_share)
        specs.append(spec)
    evaluation = Evaluation(
        path=f"{path} ({system})" if is_one_of_several else str(path),
        task=SCORES,
        benchmark="",
        config=SCORES,
        setting="",
        model=system,
        created=changed_at(path),
        status="success",
        expected=len(records),
        records=records,
        score_specs=specs,
    )
    return with_passes(evaluation)


def _text(row: TableRow, column: str) -> str:
    """Return the text of a cell. Raises InputError if it is empty."""
    value = row.fields[column]
    text = "" if value is None else str(value).strip()
    if not text:
        raise InputError(f"{row.where}: the column {column!r} is empty")
    return text


def _score(row: TableRow, column: str) -> float | None:
    """Return the score in a cell, or None for an empty cell. Raises InputError for other content."""
    value: Any = row.fields[column]
    is_empty = value is None or (isinstance(value, str) and not value.strip())
    if is_empty or value != value:
        # NaN is not equal to itself.
        return None
    if isinstance(value, Mapping | list):
        number = None
    else:
        number = number_of(value if isinstance(value, str | int | float) else str(value))
    if number is None:
        raise InputError(
            f"{row.where}: the column {column!r} is {value!r:.60}; allowed: a number, yes or no, true or "
            "false, Inspect's C, P, I or N, or nothing"
        )
    return number
