"""Scores of stub judges on all labels of the real data, corrected by a part of them, against the rest."""

import random
from pathlib import Path
from typing import Any

import numpy as np

import qabench
from qabench.benchmarks.felm.method import DOMAINS
from qabench.evaluation.judged import dataset_labels, part_of
from qabench.runs.human import judged_scores, with_human

Row = dict[str, Any]


def test_claims_of_experts_correct_a_judge(mirror: Path) -> None:
    """A judge of known error rates on the experts' claims: a part of the labels finds what all of them say."""
    draw = random.Random(0).random
    hits = 0
    for split in ("test", "validation"):
        rows = []
        for question in qabench.benchmark("expertqa").load("random", None, split).rows:
            claims = []
            for claim in question.row["answers"][0]["claims"] or ():
                is_supported = claim["support"] == "Complete"
                is_correct = claim["correctness"] in ("Definitely correct", "Probably correct")
                label = "Y" if draw() < (0.9 if is_supported else 0.4) else "N"
                fact_score = float(draw() < (0.7 if is_correct else 0.3))
                claims.append(
                    {
                        "claim": claim["claim_string"],
                        "evidence": claim["evidence"],
                        "label": label,
                        "fact_score": fact_score,
                    }
                )
            rows.append({"id": question.id, "claims": claims})
        evaluation = qabench.evaluate_predictions("expertqa", "random", rows, split=split)
        scores = judged_scores(evaluation)
        assert [score.name for score in scores] == ["supported", "correct"]
        # The same claims as in the authors' agreement.
        agreement = evaluation["autoais_agreement.accuracy"]
        right = [item.verdict == item.label for item in scores[0].items]
        assert np.mean(right) == agreement.value and len(right) == agreement.n
        hits += _hits(evaluation)
    assert hits >= 2 * 2 * 20 * 0.85


def test_segments_correct_an_evaluator(mirror: Path) -> None:
    draw = random.Random(1).random
    hits = 0
    for domain in DOMAINS:
        rows = []
        for question in qabench.benchmark("felm").load(domain).rows:
            verdicts = [draw() < (0.95 if label else 0.6) for label in question.row["labels"]]
            rows.append({"id": question.id, "labels": verdicts})
        hits += _hits(qabench.evaluate_predictions("felm", domain, rows))
    assert hits >= len(DOMAINS) * 20 * 0.85


def _hits(evaluation: qabench.Evaluation) -> int:
    """Count the intervals of 20 random parts of 100 labels that contain the mean of all labels."""
    labels = dataset_labels(judged_scores(evaluation))
    hits = 0
    for seed in range(20):
        (result,), _ = with_human([evaluation], part_of(labels, 100, seed))
        for correction in result.corrections:
            truth = np.mean([item.label for item in correction.score.items])
            interval = correction.result.interval
            hits += interval.low <= truth <= interval.high
    return hits
