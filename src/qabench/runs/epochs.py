"""Scores of questions that a harness answered several times, in several epochs.

Inspect's reducers make one score of the scores of a question's epochs: their mean, their maximum,
pass@k and others. A task may name several of them. Each one then gives a score of its own, such as
"match.max".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import median

from qabench.evaluation import Evaluation
from qabench.evaluation.passes import with_passes
from qabench.evaluation.records import rows_by_question
from qabench.evaluation.score_spec import MEAN, Pass, ScoreSpec

# A function from the scores of a question's epochs, in order, to the question's score.
Reducer = Callable[[Sequence[float]], float]
# Inspect's reducers by name. The mean is not here, because it needs no reducer in a ScoreSpec.
REDUCERS: Mapping[str, Reducer] = {
    "max": max,
    "median": median,
    # If several values are the most common, the first one counts, as in Inspect.
    "mode": lambda values: max(values, key=list(values).count),
}
# The names of Inspect's other reducers, such as "pass_at_2".
WITH_NUMBER = re.compile(r"(at_least|pass_at|pass_k)_(\d+)")
ABOUT = "The score of each question is the {} of its epochs."


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Inspect's reducer at_least: 1 if at least ``k`` epochs of a question are right."""

    k: int

    def __call__(self, values: Sequence[float]) -> float:
        return float(sum(value >= 1 for value in values) >= self.k)


@dataclass(frozen=True, slots=True)
class PassOfRight:
    """Inspect's reducers pass_at and pass_k: a value of 1 or more is right."""

    estimate: Pass

    def __call__(self, values: Sequence[float]) -> float:
        return self.estimate([float(value >= 1) for value in values])


def with_reducers(evaluation: Evaluation, reducers: Mapping[str, Sequence[str]]) -> Evaluation:
    """Return an evaluation with one score for each reducer that the harness applied to epochs.

    If the harness did not only average the epochs, the mean is named NAME.mean, so that nobody
    takes it for the score that the harness printed.

    Args:
        evaluation: the evaluation of a log, whose scores are means over all epochs.
        reducers: the names of the reducers of each score, such as {"match": ["max"]}.
    """
    if all(record.epoch == 1 for record in evaluation.records):
        # Every reducer leaves a single value as it is.
        return evaluation
    specs: list[ScoreSpec] = []
    plain = [spec for spec in evaluation.score_specs if not spec.reducer]
    for spec in plain:
        names = [name for name in reducers.get(spec.name, ()) if name != MEAN]
        if not names:
            specs.append(spec)
            continue
        specs.append(named_mean(spec))
        for name in names:
            reducer = _reducer(name)
            if reducer is None:
                continue
            values = []
            # A score that another harness wrote has one column, so each row has one number.
            for rows in rows_by_question(spec, evaluation.columns()).values():
                values.append(reducer([row[0] for row in rows]))
            # A question with fewer epochs than k has no pass@k. Then the score is left out.
            if all(map(isfinite, values)):
                specs.append(_reduced(spec, name, reducer))
    return with_passes(replace(evaluation, score_specs=specs))


def named_mean(spec: ScoreSpec) -> ScoreSpec:
    """Return the mean over all epochs under a separate name, such as "match.mean"."""
    name = f"{spec.name}.{MEAN}"
    return replace(spec, name=name, title=name, about=ABOUT.format(MEAN), columns=spec.needs)


def with_same_names(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """If one evaluation has a score "match.mean", give the mean "match" of the others this name."""
    with_named_mean = set()
    for evaluation in evaluations:
        for spec in evaluation.score_specs:
            if spec.name == f"{spec.group}.{MEAN}":
                with_named_mean.add(spec.group)
    renamed = []
    for evaluation in evaluations:
        specs = []
        for spec in evaluation.score_specs:
            if spec.name == spec.group and spec.group in with_named_mean:
                spec = named_mean(spec)
            specs.append(spec)
        renamed.append(replace(evaluation, score_specs=specs))
    return renamed


def _reducer(name: str) -> Reducer | None:
    """Return Inspect's reducer with this name, or None if the reducer is another package's."""
    if name in REDUCERS:
        return REDUCERS[name]
    numbered = WITH_NUMBER.fullmatch(name)
    if numbered is None:
        return None
    kind, k = numbered[1], int(numbered[2])
    if kind == "at_least":
        return AtLeast(k)
    return PassOfRight(Pass(k, all=kind == "pass_k"))


def reduced_name(score: str, reducer: str) -> str:
    """Return qabench's name for a score after a reducer, such as "match.max" or "match.pass@2"."""
    short = reducer.replace("pass_at_", "pass@").replace("pass_k_", "pass^")
    return f"{score}.{short}"


def _reduced(spec: ScoreSpec, name: str, reducer: Reducer) -> ScoreSpec:
    """Return the score that reduces the epochs of each question, and averages over questions."""
    own = reduced_name(spec.name, name)
    return replace(
        spec,
        name=own,
        title=own,
        about=ABOUT.format(name.replace("_", " ")),
        columns=spec.needs,
        reducer=reducer,
    )
