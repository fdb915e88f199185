"""Scores of files of predictions: {"id", "answer"} per line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.rivers.score import match
from qabench.data.predictions import Predictions, join
from qabench.evaluation import ANSWERED, FAILED, Evaluation, Record
from qabench.evaluation.signature import signature
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.rivers.parse import read_rows


def evaluate(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    families: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Scores predictions on the questions of a config."""
    about = dataset_table("rivers").config(config)
    ((file,),) = about.splits.values()
    rows = list(read_rows(questions or open_path("rivers", file)))
    joined = join([row["id"] for row in rows], predictions)
    records = []
    for row, prediction in zip(rows, joined.rows, strict=True):
        answer = None if prediction is None else prediction.fields["answer"]
        records.append(
            Record(
                id=row["id"],
                epoch=1,
                question=row["question"],
                reference=row["answer"],
                messages=[],
                answer=answer,
                status=FAILED if answer is None else ANSWERED,
                problem="the file has no prediction" if answer is None else None,
                scores={"match": match(row["answer"], answer)},
                groups={"continent": (row["continent"],)},
            )
        )
    signatures = {"match": signature("river_match", data=file_digest("rivers", file), case="ignored")}
    problems = joined.problems()
    return benchmark.evaluation(predictions, about.name, records, signatures, problems=problems)
