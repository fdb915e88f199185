"""The scores of any benchmark for the rows of a dataset of any size. See ``qabench.scale.jobs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow

from qabench.benchmarks import benchmark
from qabench.errors import QabenchError, unknown_name
from qabench.evaluation.score_spec import CUTOFF
from qabench.evaluation.scoring import Item, outcomes_of
from qabench.scale.jobs import Columns, Rows, map_parts

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
    """Write what the scores of each prediction are computed from as columns of Parquet files, such as "acc.loose".

    Args:
        rows: the benchmark's rows (or only the columns that its scores need, such as ``answer``),
            with one more column for the predictions, null for unanswered questions.
        output: see ``qabench.scale.jobs.map_parts``.
        name: the benchmark.
        groups: scores and groups of scores. By default, the benchmark's default groups.
        prediction: the column of the predictions: of the first of ``Benchmark.prediction_fields``,
            such as the answers.
        options: the benchmark's options, such as {"lemmatizer": "spacy"}.
        **job_options: ``rows_per_part``, ``progress`` and ``gpu`` of ``map_parts``. The batches of
            a network are formed in each part.

    Raises:
        InputError: an unknown column, score or option, or the folder has the results of another job.
    """
    if prediction not in rows.column_names:
        raise unknown_name("the dataset has no column", prediction, rows.column_names)
    scored = benchmark(name)
    chosen = scored.selected_groups(groups) or scored.default_groups
    arguments = scored.checked_options(options or {})
    signatures = scored.scorer(chosen, **arguments).signatures((), {"benchmark": name})
    load = partial(_load, name, chosen, prediction, arguments, signatures)
    job = {"job": "score", "benchmark": name, "prediction": prediction, "signatures": signatures}
    return map_parts(rows, output, load, job, **job_options)


def _load(
    name: str, groups: Sequence[str], prediction: str, options: Options, signatures: Options
) -> Callable[[Rows], Columns]:
    scored = benchmark(name)
    scorer = scored.scorer(groups, **options)
    if (own := scorer.signatures((), {"benchmark": name})) != signatures:
        raise QabenchError(f"a machine of the cluster scores with {own}, not {signatures}")
    # Every part has the same columns, also if none of its rows has some score.
    declared = [name for spec in scored.scores if spec.group in signatures for name in spec.needs]

    def scores(rows: Rows) -> Columns:
        predictions = [row[prediction] for row in rows]
        items = [
            Item(row, None if value is None else {scored.prediction_fields[0]: value})
            for row, value in zip(rows, predictions, strict=True)
        ]
        outcomes = [outcome.scores for outcome in outcomes_of(scorer, items, name)]
        computed = [column for each in outcomes for column in each]
        names = [column for column in declared if not column.endswith(CUTOFF)] + computed
        return {
            column: pyarrow.array([each.get(column) for each in outcomes], pyarrow.float64())
            for column in dict.fromkeys(names)
        }

    return scores
