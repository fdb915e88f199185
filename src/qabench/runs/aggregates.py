"""The scores that a log of another harness has of itself, compared with the scores that follow from its samples.

Harnesses write the aggregate beside the samples: Inspect in the header, lm-evaluation-harness and
lighteval in ``results_*.json``, Every Eval Ever in the document of the run. Equal scores need no
word. Each different one is a note with both numbers and the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isclose, isfinite
from statistics import median

from qabench.data.predictions import some
from qabench.data.rows import Json
from qabench.evaluation import FAILED, Evaluation
from qabench.evaluation.matching import with_passes
from qabench.evaluation.records import rows_by_question, values_of
from qabench.evaluation.score_spec import MEAN, Pass, ScoreSpec

TOLERANCE = 1e-6  # harnesses add up in other orders, and some round
FEWEST_DIGITS = 3  # of a rounded score
# Metrics of Inspect that are the mean of the samples, and those that say how far samples differ.
MEANS = ("accuracy", "mean")
SPREADS = ("stderr", "bootstrap_stderr", "std", "var", "ci", "ci_wilson")
# From the scores of a question's epochs, in their order, to its score, as Inspect's reducers compute it.
REDUCERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "max": max,
    "median": median,
    # Of several most common values the first one counts, as in Inspect.
    "mode": lambda values: max(values, key=list(values).count),
}
WITH_NUMBER = re.compile(r"(at_least|pass_at|pass_k)_(\d+)")
ABOUT = "The score of each question is the {} of its epochs."


@dataclass(frozen=True, slots=True)
class Reported:
    """A score in a log's own aggregate.

    Attributes:
        score: the name that the score has here, such as "match" or "match.max".
        metric: its name in the log, such as "accuracy".
        value: not finite if it is undefined there.
        samples: the number of samples, or of questions if it is of reduced epochs. None if the log does not say.
    """

    score: str
    metric: str
    value: float
    samples: int | None = None

    def __post_init__(self) -> None:
        """Take a whole number that no float can hold as undefined."""
        if isinstance(self.value, int) and abs(self.value) > sys.float_info.max:
            object.__setattr__(self, "value", inf)


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
    """Return the log of a task with epochs with the scores by the reducers that the harness used.

    A score whose epochs were not only averaged has the name NAME.mean here, so that it is not
    taken for the score that the harness printed.

    Args:
        evaluation: whose scores are means.
        reducers: the names of the reducers of each score, such as {"match": ["max"]}.
    """
    if all(record.epoch == 1 for record in evaluation.records):
        return evaluation  # every reducer leaves a single value as it is
    specs: list[ScoreSpec] = []
    plain = [spec for spec in evaluation.score_specs if not spec.reducer]
    for spec in plain:
        others = [name for name in reducers.get(spec.name, ()) if name != MEAN]
        if not others:
            specs.append(spec)
            continue
        specs.append(named_mean(spec))
        for name in others:
            reducer = _reducer(name)
            rows = rows_by_question(spec, evaluation.records)
            # A question with fewer epochs than k has no pass@k.
            if reducer and all(isfinite(reducer([row[0] for row in each])) for each in rows.values()):
                specs.append(_reduced(spec, name, reducer))
    return with_passes(replace(evaluation, score_specs=specs))


def named_mean(spec: ScoreSpec) -> ScoreSpec:
    """Return the mean over all epochs under a name of its own, such as "match.mean"."""
    name = f"{spec.name}.{MEAN}"
    return replace(spec, name=name, title=name, about=ABOUT.format(MEAN), columns=spec.needs)


def with_same_names(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations in which the mean of a score has one name: "match.mean" if one of them calls it so."""
    named = {
        spec.group
        for each in evaluations
        for spec in each.score_specs
        if spec.name == f"{spec.group}.{MEAN}"
    }
    renamed = []
    for each in evaluations:
        specs = [
            named_mean(spec) if spec.name == spec.group and spec.group in named else spec
            for spec in each.score_specs
        ]
        renamed.append(replace(each, score_specs=specs))
    return renamed


def _reducer(name: str) -> Callable[[Sequence[float]], float] | None:
    """Return Inspect's reducer of this name, or None for one of another package."""
    if name in REDUCERS:
        return REDUCERS[name]
    numbered = WITH_NUMBER.fullmatch(name)
    if numbered is None:
        return None
    kind, k = numbered[1], int(numbered[2])
    return AtLeast(k) if kind == "at_least" else PassOfRight(Pass(k, all=kind == "pass_k"))


def reduced_name(score: str, reducer: str | None, several: bool) -> str:
    """Return the name of the score here that a reducer gives: "match.max", "match.pass@2"."""
    if not several or reducer is None:
        return score
    short = reducer.replace("pass_at_", "pass@").replace("pass_k_", "pass^")
    return f"{score}.{short}"


def _reduced(spec: ScoreSpec, name: str, reducer: Callable[[Sequence[float]], float]) -> ScoreSpec:
    own = reduced_name(spec.name, name, several=True)
    return replace(
        spec,
        name=own,
        title=own,
        about=ABOUT.format(name.replace("_", " ")),
        columns=spec.needs,
        reducer=reducer,
    )


def reported_by_inspect(
    results: Json, has_epochs: bool
) -> tuple[list[Reported], dict[str, list[str]], list[Reported]]:
    """Return the scores in the ``results`` of a log of Inspect, the reducers of each, and its other metrics.

    Every reducer leaves a single epoch as it is. The other metrics, such as the perplexity of a
    corpus, do not follow from one number per sample.
    """
    reported: list[Reported] = []
    reducers: dict[str, list[str]] = {}
    others: list[Reported] = []
    for score in results.get("scores") or ():
        name = score["name"]
        # One of several keys of the values of a scorer.
        base = name if name == score.get("scorer", name) else f"{score['scorer']}.{name}"
        reducer = score.get("reducer")
        own = reducers.setdefault(base, [])
        own += [reducer] if reducer and reducer not in own else []
        for key, metric in (score.get("metrics") or {}).items():
            kind = str(metric.get("group") or metric.get("name") or key).rpartition("/")[2]
            value = metric.get("value")
            if kind in SPREADS or not isinstance(value, int | float):
                continue
            if kind in MEANS:
                by = f"{kind} of {reducer}" if reducer and reducer != MEAN else kind
                place = base if reducer is None else f"{base}\n{reducer}"
                reported.append(Reported(place, by, value, score.get("scored_samples")))
            else:
                others.append(Reported(base, key, value))
    several = {
        base: has_epochs and any(name != MEAN for name in names) for base, names in reducers.items()
    }
    named = []
    for each in reported:
        base, _, reducer = each.score.partition("\n")
        named.append(replace(each, score=reduced_name(base, reducer or None, several[base])))
    return named, reducers, others


def with_reported(
    evaluation: Evaluation, reported: Sequence[Reported], others: Sequence[Reported] = ()
) -> Evaluation:
    """Return the log of another task with a note for each score that its own aggregate has differently.

    Args:
        evaluation: with the scores that follow from the samples.
        reported: the aggregate.
        others: metrics of the aggregate that need not be means, such as those over a whole corpus.
    """
    by_name = {spec.name: spec for spec in evaluation.score_specs}
    own = values_of(evaluation.score_specs, evaluation.records)
    notes = dict.fromkeys(evaluation.notes)
    told: set[str] = set()
    for each in reported:
        if each.score in told:
            continue
        here = own.get(each.score)
        if here is None and not isfinite(each.value):
            continue
        if here is not None and _is_equal(each.value, here):
            continue
        told.add(each.score)
        shown = "not computed here" if here is None else f"{here:.4f} here"
        theirs = f"{each.value:.4f}" if isfinite(each.value) else "undefined"
        reason = _reason(evaluation, each, by_name.get(each.score), here)
        notes[f"{each.score} is {theirs} in the log ({each.metric}), {shown}: {reason}"] = None
    groups = {spec.name: spec.group for spec in evaluation.score_specs}
    only_there = [
        f"{each.score} {each.metric} {each.value:.6g}"
        for each in others
        if not any(
            groups[name] == each.score and _is_equal(each.value, here) for name, here in own.items()
        )
    ]
    if only_there:
        notes[f"only over the whole corpus, in the log: {', '.join(only_there)}"] = None
    return replace(evaluation, notes=list(notes))


def _is_equal(theirs: float, ours: float) -> bool:
    if isclose(theirs, ours, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        return True
    digits = len(repr(theirs).partition(".")[2])
    return FEWEST_DIGITS <= digits < 10 and isclose(round(ours, digits), theirs, abs_tol=1e-12)


def _reason(
    evaluation: Evaluation, reported: Reported, spec: ScoreSpec | None, here: float | None
) -> str:
    records = evaluation.records
    stem, _, reducer = reported.score.rpartition(".")
    if here is None and stem in {each.group for each in evaluation.score_specs}:
        return f"the reducer {reducer} is not known here, or has too few epochs of some questions"
    if here is None:
        return "the samples have no number for it; it is only over the whole corpus"
    columns = spec.needs if spec else (reported.score,)
    valued = [record for record in records if all(name in record.scores for name in columns)]
    reasons = []
    if lacking := len(records) - len(valued):
        reasons.append(f"{lacking} of {len(records)} samples here have no value")
    if failed := [record.id for record in records if record.status == FAILED]:
        reasons.append(f"{len(failed)} failed ({some(failed)})")
    counts = (len(valued), len({record.id for record in valued}))
    if reported.samples is not None and reported.samples not in counts:
        reasons.append(f"the log's is over {reported.samples} samples, this one over {counts[0]}")
    if not reasons:
        reasons.append("the log's is not the mean of the values of its samples")
    return "; ".join(reasons)
