"""Short, distinct names of systems for tables, charts and comparisons."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qabench.evaluation.evaluation import Evaluation

MAX_LENGTH = 80


def labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return one label per evaluation: the model's name, with the setting, seed, date or file if needed.

    The provider is left out of a model's name unless two providers have a model of that name.
    """
    models = [evaluation.model for evaluation in evaluations]
    names = [model.rpartition("/")[2] or model or "no name" for model in models]
    if len(set(names)) < len(set(models)):
        names = models
    seeds = [evaluation.arguments.get("seed") for evaluation in evaluations]
    details = [
        [evaluation.setting for evaluation in evaluations],
        ["" if seed is None else f"seed {seed}" for seed in seeds],
        [evaluation.created[:16].replace("T", " ") for evaluation in evaluations],
        [re.split(r"[/\\]", evaluation.path)[-1] for evaluation in evaluations],
    ]
    for values in details:
        # Different settings are shown even if the models already distinguish the systems.
        ambiguous = len(set(names)) < len(names) or values is details[0]
        if ambiguous and len(set(values)) > 1:
            names = [f"{name} · {value}" if value else name for name, value in zip(names, values, strict=True)]
    return distinct([name[:MAX_LENGTH] for name in names])


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names, each on one line; repeated names get a number."""
    unique: dict[str, None] = {}
    for raw in names:
        name = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", raw).strip()
        number, candidate = 1, name
        while candidate in unique:
            number += 1
            candidate = f"{name} ({number})"
        unique[candidate] = None
    return list(unique)
