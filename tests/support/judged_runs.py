"""Evaluations with the verdicts of a stub judge."""

from collections.abc import Sequence

import numpy as np

from qabench.evaluation import Evaluation, Record
from qabench.evaluation.records import ANSWERED
from qabench.evaluation.score_spec import ScoreSpec

SPEC = ScoreSpec("match", "Match", "Verdict of a stub judge.", "match")


def evaluation_of(verdicts: Sequence[float], model: str = "model") -> Evaluation:
    records = [
        Record(
            f"q{number}", 1, f"Question {number}", "Reference", (), f"Answer {number}", ANSWERED, scores={"match": v}
        )
        for number, v in enumerate(verdicts)
    ]
    return Evaluation(
        model, "task", "", "task", "", model, "2026-01-01", "success", len(records), records, score_specs=[SPEC]
    )


def stub(truth: np.ndarray, sensitivity: float, specificity: float, seed: int) -> list[float]:
    draws = np.random.default_rng(seed).random(len(truth))
    return np.where(truth == 1, draws < sensitivity, draws >= specificity).astype(float).tolist()
