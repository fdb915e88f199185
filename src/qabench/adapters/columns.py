"""Score a dataset of any size with a benchmark's scorer. See ``qabench.cluster.jobs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow

from qabench.benchmarks import benchmark
from qabench.cluster.jobs import Columns, Rows, map_parts
from qabench.data.containers import items_of, json_columns, read_column
from qabench.errors import QabenchError, unknown_name
from qabench.evaluation.score_spec import CUTOFF
from qabench.evaluation.scoring import Item, outcomes_of
from qabench.loading_scripts import dataset_table

if TYPE_CHECKING:
    from datasets import Dataset

Options = Mapping[str, Any]


def score_dataset(
    rows: Dataset,
    output: str | Path,
    name: str,
    groups: Sequence[str] | None = None,
    *,
    prediction: str = "prediction",
    options: Options | None = None,
    **job_options: Any,
) -> list[Path]:
    """Score rows of a dataset, and write the columns of the scores to Parquet files.

    A column such as "acc.loose" has one value per prediction. Scores are computed from the values
    of all predictions.

    Args:
        rows: the benchmark's rows (or only the columns that its scores need, such as ``answer``),
            with one more column for the predictions, null for unanswered questions.
        output: see ``qabench.cluster.jobs.map_parts``.
        name: the benchmark.
        groups: scores and groups of scores. By default, the benchmark's default groups.
        prediction: the column with the predictions. They are values of the first of
            ``Benchmark.prediction_fields``, such as answers.
        options: the benchmark's options, such as {"lemmatizer": "spacy"}.
        **job_options: ``rows_per_part``, ``progress`` and ``gpu`` of ``map_parts``. A network's
            batches are formed within a part.

    Raises:
        InputError: an unknown column, score or option, plain text in a column that the dataset
            stores as JSON, or the folder has the results of another job.
    """
    if prediction not in rows.column_names:
        raise unknown_name("the dataset has no column", prediction, rows.column_names)
    scored = benchmark(name)
    chosen = scored.selected_groups(groups) or scored.default_groups
    arguments = scored.checked_options(options or {})
    signatures = scored.scorer(chosen, **arguments).signatures((), {"benchmark": name})
    is_json = prediction in json_columns(rows)
    load = partial(_load, name, chosen, prediction, is_json, arguments, signatures)
    job = {"job": "score", "benchmark": name, "prediction": prediction, "signatures": signatures}
    return map_parts(rows, output, load, job, **job_options)


def _load(
    name: str,
    groups: Sequence[str],
    prediction: str,
    is_json: bool,
    options: Options,
    signatures: Options,
) -> Callable[[Rows], Columns]:
    scored = benchmark(name)
    scorer = scored.scorer(groups, **options)
    if (own := scorer.signatures((), {"benchmark": name})) != signatures:
        raise QabenchError(f"a machine of the cluster scores with {own}, not {signatures}")
    # Every part has the same columns, even if none of its rows has a score.
    declared: dict[str, None] = {}
    for spec in scored.scores:
        if spec.group in signatures:
            declared |= dict.fromkeys(name for name in spec.needs if not name.endswith(CUTOFF))
    written = dataset_table(name).json_columns

    def scores(rows: Rows) -> Columns:
        # The scorer reads these columns as JSON. Reject plain text, because "10.50" would become a
        # number.
        for column in written:
            if rows and column in rows[0]:
                read_column([row[column] for row in rows], column)
        predictions = items_of([row[prediction] for row in rows], prediction)
        if is_json:
            predictions = read_column(predictions, prediction)
        items = []
        for row, value in zip(rows, predictions, strict=True):
            fields = None if value is None else {scored.prediction_fields[0]: value}
            items.append(Item(row, fields))
        outcomes = outcomes_of(scorer, items, name)
        names = dict(declared)
        for outcome in outcomes:
            names |= dict.fromkeys(outcome.scores)
        columns = {}
        for column in names:
            values = [outcome.scores.get(column) for outcome in outcomes]
            columns[column] = pyarrow.array(values, pyarrow.float64())
        return columns

    return scores
