"""Rivers: which river flows through a city?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Need, Setting
from qabench.evaluation.metric import Metric
from qabench.evaluation.signature import IRRELEVANT, Declaration, Field

if TYPE_CHECKING:
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation


def match(reference: str, answer: str | None, ignore_case: bool = True) -> float:
    """Return 1.0 if an answer contains the reference, else 0.0; 0.0 for no answer."""
    if answer is None:
        return 0.0
    return float(reference.lower() in answer.lower() if ignore_case else reference in answer)


class Rivers(Benchmark):
    """Questions about rivers, with one-word answers."""

    name = "rivers"
    title = "Rivers"
    settings = (Setting("closed-book", "rivers", "The question alone."),)
    part = "continent"
    metrics = (Metric("match", "Match", "Share of answers that name the river.", "match", graded=True),)
    headline = ("match",)
    families = {"match": "whether the answer names the river"}
    default_families = ("match",)
    groupings = {"continent": "continent"}
    needs = (Need("the share of answers that name the river"),)

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        ignored = dict.fromkeys(("references", "data", "prompt", "model"), IRRELEVANT)
        return {"river_match": {**ignored, "case": Field(("ignored",), "case: {value} instead of {official}")}}

    def evaluate(
        self, config: str | None, predictions: Predictions, *, questions: Path | None = None, **options: Any
    ) -> Evaluation:
        """Score predictions on the questions of a config."""
        from qabench.data.predictions import NO_PREDICTION, join
        from qabench.evaluation import ANSWERED, MISSING, Record
        from qabench.evaluation.signature import signature
        from qabench.loading_scripts import dataset_table, file_digest, open_path
        from qabench.loading_scripts.rivers.parse import read_rows

        selected = dataset_table(self.name).config(config)
        ((file,),) = selected.splits.values()
        rows = list(read_rows(questions or open_path(self.name, file)))
        joined = join([row["id"] for row in rows], predictions)
        records = []
        for row, prediction in zip(rows, joined.rows, strict=True):
            answer = prediction and prediction.fields["answer"]
            records.append(
                Record(
                    id=row["id"],
                    epoch=1,
                    question=row["question"],
                    reference=row["answer"],
                    messages=[],
                    answer=answer,
                    status=MISSING if prediction is None else ANSWERED,
                    problem=NO_PREDICTION if prediction is None else None,
                    scores={"match": match(row["answer"], answer)},
                    groups={"continent": (row["continent"],)},
                )
            )
        signatures = {"match": signature("river_match", data=file_digest(self.name, file), case="ignored")}
        return self.evaluation(predictions, selected.name, records, signatures, problems=joined.problems())


BENCHMARK = Rivers()
