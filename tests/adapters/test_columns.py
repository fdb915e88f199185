"""Scores as columns beside the rows of a dataset: of any benchmark, and equal to those of a file."""

from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import qabench
from qabench.adapters.columns import score_dataset
from qabench.benchmarks import benchmark_names

pytestmark = pytest.mark.quick
PREDICTIONS: dict[str, Any] = {"felm": "1, 3", "fastbook": ["a passage"]}


@pytest.mark.parametrize("name", benchmark_names())
def test_every_benchmark_scores_the_rows_of_its_dataset(name: str, tmp_path: Path) -> None:
    (rows,) = qabench.load_dataset(name, "sample").values()
    prediction = PREDICTIONS.get(name, "The answer is Mars, as all experts agree.")
    options = {"lemmatizer": "simplemma"} if name == "fanoutqa" else {}
    predicted = rows.add_column("prediction", [prediction] * len(rows))
    (path,) = score_dataset(predicted, tmp_path / "scores", name, options=options)
    table = pyarrow.parquet.read_table(path).to_pydict()
    field = qabench.benchmark(name).prediction_fields[0]
    predictions = [{"id": row["id"], field: prediction} for row in rows]
    evaluation = qabench.evaluate_predictions(name, "sample", predictions, **options)
    scores = {record.id: record.scores for record in evaluation.records}
    compared = 0
    for number, row in enumerate(rows):
        for column, values in table.items():
            assert values[number] == scores[row["id"]].get(column), (row["id"], column)
            compared += values[number] is not None
    assert compared >= len(rows) / 2
