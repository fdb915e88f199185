"""Synthetic predictions for the quickstart: reference answers with parts dropped, or with padding."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from qabench.answers import loads, text_of
from qabench.data.predictions import Prediction, Predictions

# The share of a reference's lines that each system keeps, and the share of questions that it answers.
SYSTEMS = {"careful": (0.95, 1.0), "hasty": (0.55, 0.92), "rambling": (0.8, 1.0)}
PADDING = "As far as I can tell, and sources differ on the details, the following should be right: "


def synthetic_predictions(system: str, rows: Sequence[Mapping[str, Any]], seed: int = 0) -> Predictions:
    """The answers of a system to questions with known answers; the same seed gives the same answers."""
    kept, answered = SYSTEMS[system]
    made = []
    for line, row in enumerate(rows, 1):
        rng = random.Random(f"{seed}/{system}/{row['id']}")
        if rng.random() > answered:
            continue
        said = [part for part in text_of(loads(row["answer"])).split("\n") if rng.random() < kept]
        text = PADDING + "; ".join(said) + "." if system == "rambling" else "\n".join(said)
        made.append(Prediction(line, row["id"], {"id": row["id"], "answer": text}))
    return Predictions(f"{system} (synthetic)", tuple(made))
