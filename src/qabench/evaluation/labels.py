"""Short, distinct names of systems for tables, charts and comparisons."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from qabench.evaluation.evaluation import Evaluation

LONGEST = 80


def labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """One label per evaluation: the model's name, with the setting, seed, date or file if needed to distinguish them.

    The provider is left out of a model's name unless two providers have a model of that name.
    """
    found = [_short(one.model) for one in evaluations]
    if len(set(found)) < len({one.model for one in evaluations}):
        found = [one.model for one in evaluations]
    parts: list[Callable[[Evaluation], str]] = [
        lambda one: one.setting,
        lambda one: f"seed {one.arguments['seed']}" if "seed" in one.arguments else "",
        lambda one: one.created[:16].replace("T", " "),
        lambda one: re.split(r"[/\\]", one.path)[-1],
    ]
    for part in parts:
        values = [part(one) for one in evaluations]
        # Different settings are shown even if the models already distinguish the systems.
        if (len(set(found)) < len(found) or part is parts[0]) and len(set(values)) > 1:
            found = [f"{label} · {value}" if value else label for label, value in zip(found, values, strict=True)]
    return distinct([label[:LONGEST] for label in found])


def distinct(names: Sequence[str]) -> list[str]:
    """The names, each on one line; repeated names get a number."""
    given: dict[str, None] = {}
    for raw in names:
        name = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", raw).strip()
        number, free = 1, name
        while free in given:
            number += 1
            free = f"{name} ({number})"
        given[free] = None
    return list(given)


def _short(model: str) -> str:
    return model.rpartition("/")[2] or model or "no name"
