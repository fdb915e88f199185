"""Imaginary systems for trying things out: answers made from the reference answers, with drops, swaps and padding.

They show what the scores react to, on real questions, with no model and no network. Nobody's results.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from qabench.answers import loads, text_of
from qabench.generations import Generation, Generations

# The share of a reference's lines that each system keeps, and the share of questions that it answers at all.
SYSTEMS = {"careful": (0.95, 1.0), "hasty": (0.55, 0.92), "rambling": (0.8, 1.0)}
PADDING = "As far as I can tell, and sources differ on the details, the following should be right: "


def imaginary_answers(system: str, rows: Sequence[Mapping[str, Any]], seed: int = 0) -> Generations:
    """A system's answers to questions with known answers; the same seed gives the same answers."""
    kept, answered = SYSTEMS[system]
    made = []
    for line, row in enumerate(rows, 1):
        rng = random.Random(f"{seed}/{system}/{row['id']}")
        if rng.random() > answered:
            continue
        said = [part for part in text_of(loads(row["answer"])).split("\n") if rng.random() < kept]
        text = PADDING + "; ".join(said) + "." if system == "rambling" else "\n".join(said)
        made.append(Generation(line, row["id"], text))
    return Generations(f"{system} (imaginary)", tuple(made))
