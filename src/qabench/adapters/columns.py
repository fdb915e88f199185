"""The scores of any benchmark for the rows of a dataset of any size. See ``qabench.scale.jobs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow

from qabench.benchmarks import benchmark
from qabench.errors import QabenchError, unknown_name
from qabench.evaluation.scoring import Item
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
    """Write the scores of each answer as columns of Parquet files, such as "acc.loose". Their means are the scores.

    Args:
        rows: the benchmark's rows (or only the columns that its scores need, such as ``answer``),
            with one more column for the answers, null for unanswered questions.
        output: see ``qabench.scale.jobs.map_parts``.
        name: the benchmark.
        groups: groups of scores. By default, the benchmark's default groups.
        prediction: the column of the answers.
        options: the benchmark's options, such as {"lemmatizer": "spacy"}.
        **job_options: ``rows_per_part``, ``progress`` and ``gpu`` of ``map_parts``. The batches of
            a network are formed in each part.
    """
    if prediction not in rows.column_names:
        raise unknown_name("the dataset has no column", prediction, rows.column_names)
    chosen = tuple(groups or benchmark(name).default_groups)
    arguments = dict(options or {})
    fields = {
        group: dict(signed)
        for group, signed in benchmark(name).scorer(chosen, **arguments).fields.items()
    }
    load = partial(_load, name, chosen, prediction, arguments, fields)
    job = {"job": "score", "benchmark": name, "prediction": prediction, "fields": fields}
    return map_parts(rows, output, load, job, **job_options)


def _load(
    name: str, groups: Sequence[str], prediction: str, options: Options, fields: Options
) -> Callable[[Rows], Columns]:
    scorer = benchmark(name).scorer(groups, **options)
    if scorer.fields != fields:
        raise QabenchError(f"a machine of the cluster scores with {scorer.fields}, not {fields}")

    def scores(rows: Rows) -> Columns:
        answers = [row[prediction] for row in rows]
        items = [
            Item(row, None if answer is None else {"answer": answer})
            for row, answer in zip(rows, answers, strict=True)
        ]
        outcomes = [outcome.scores for outcome in scorer.score(items)]
        names = dict.fromkeys(column for each in outcomes for column in each)
        return {
            column: pyarrow.array([each.get(column) for each in outcomes], pyarrow.float64())
            for column in names
        }

    return scores
