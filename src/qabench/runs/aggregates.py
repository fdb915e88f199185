"""Compares the scores that another harness printed with the scores that follow from its samples.

Harnesses write the aggregate beside the samples: Inspect in the header, lm-evaluation-harness and
lighteval in ``results_*.json``, Every Eval Ever in the document of the run. Equal scores need no
note. A different score gets a note with both numbers and the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isclose, isfinite
from statistics import median

from qabench.data.rows import Json
from qabench.errors import some
from qabench.evaluation import FAILED, Evaluation
from qabench.evaluation.passes import with_passes
from qabench.evaluation.records import rows_by_question, values_of
from qabench.evaluation.score_spec import MEAN, Pass, ScoreSpec

# Harnesses sum in a different order, and some round.
TOLERANCE = 1e-6
# A number with fewer digits after the point is not taken for a rounded score.
FEWEST_DIGITS = 3
# Inspect's metrics that average the samples, and those that measure their spread.
MEANS = ("accuracy", "mean")
SPREADS = ("stderr", "bootstrap_stderr", "std", "var", "ci", "ci_wilson")
# Inspect's reducers: functions from the scores of a question's epochs, in order, to its score.
REDUCERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "max": max,
    "median": median,
    # If several values are the most common, the first one counts, as in Inspect.
    "mode": lambda values: max(values, key=list(values).count),
}
WITH_NUMBER = re.compile(r"(at_least|pass_at|pass_k)_(\d+)")
ABOUT = "The score of each question is the {} of its epochs."


@dataclass(frozen=True, slots=True)
class Reported:
    """A score in a log's own aggregate.

    Attributes:
        score: the name that the score has here, such as "match" or "match.max".
        metric: the name of the metric in the log, such as "accuracy".
        value: the value in the log. Not finite if it is undefined there.
        samples: the number of samples, or of questions if epochs were reduced. None if the log does
            not say.
    """

    score: str
    metric: str
    value: float
    samples: int | None = None

    def __post_init__(self) -> None:
        """Treat an integer that is too large for a float as undefined."""
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


def _reducer(name: str) -> Callable[[Sequence[float]], float] | None:
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


def reduced_name(score: str, reducer: str | None, several: bool) -> str:
    """Return qabench's name for a score after a reducer, such as "match.max" or "match.pass@2".

    ``several`` says that several epochs were reduced otherwise than by their mean. If it is false,
    the score keeps its name.
    """
    if not several or reducer is None:
        return score
    short = reducer.replace("pass_at_", "pass@").replace("pass_k_", "pass^")
    return f"{score}.{short}"


def _reduced(spec: ScoreSpec, name: str, reducer: Callable[[Sequence[float]], float]) -> ScoreSpec:
    """Return the score that reduces the epochs of each question, and averages over questions."""
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
    """Return the scores in an Inspect log, the reducers of each score, and the log's other metrics.

    Without epochs, the names of scores have no reducer, because every reducer leaves a single value
    as it is. The other metrics, such as the perplexity of a corpus, do not follow from one number
    per sample.
    """
    # Pairs: a reducer's name, or None, and the mean of the scores that it returned.
    means: list[tuple[str | None, Reported]] = []
    reducers: dict[str, list[str]] = {}
    other_metrics: list[Reported] = []
    for score in results.get("scores") or ():
        name = score["name"]
        base = name
        if name != score.get("scorer", name):
            # A scorer whose values are dicts has one score per key, which is named after the key.
            base = f"{score['scorer']}.{name}"
        reducer = score.get("reducer")
        reducers_of_score = reducers.setdefault(base, [])
        if reducer and reducer not in reducers_of_score:
            reducers_of_score.append(reducer)
        for key, metric in (score.get("metrics") or {}).items():
            kind = str(metric.get("group") or metric.get("name") or key).rpartition("/")[2]
            value = metric.get("value")
            if kind in SPREADS or not isinstance(value, int | float):
                continue
            if kind not in MEANS:
                other_metrics.append(Reported(base, key, value))
                continue
            if reducer and reducer != MEAN:
                kind = f"{kind} of {reducer}"
            means.append((reducer, Reported(base, kind, value, score.get("scored_samples"))))
    # A score's name depends on all of its reducers, which are only known after the loop above.
    named = []
    for reducer, mean in means:
        has_other_reducer = bool(set(reducers[mean.score]) - {MEAN})
        several = has_epochs and has_other_reducer
        named.append(replace(mean, score=reduced_name(mean.score, reducer or None, several)))
    return named, reducers, other_metrics


def with_reported(
    evaluation: Evaluation, reported: Sequence[Reported], others: Sequence[Reported] = ()
) -> Evaluation:
    """Add a note for each score that differs from the log's own aggregate.

    Args:
        evaluation: an evaluation with the scores that follow from the samples.
        reported: the aggregate.
        others: metrics of the aggregate that need not be means, such as those over a whole corpus.
    """
    by_name = {spec.name: spec for spec in evaluation.score_specs}
    values_here = values_of(evaluation.score_specs, evaluation.records)
    notes = dict.fromkeys(evaluation.notes)
    scores_with_note: set[str] = set()
    for theirs in reported:
        if theirs.score in scores_with_note:
            continue
        here = values_here.get(theirs.score)
        if here is None and not isfinite(theirs.value):
            continue
        if here is not None and _is_equal(theirs.value, here):
            continue
        scores_with_note.add(theirs.score)
        shown_here = "not computed here"
        if here is not None:
            shown_here = f"{here:.4f} here"
        shown_there = "undefined"
        if isfinite(theirs.value):
            shown_there = f"{theirs.value:.4f}"
        reason = _reason(evaluation, theirs, by_name.get(theirs.score), here)
        note = (
            f"{theirs.score} is {shown_there} in the log ({theirs.metric}), {shown_here}: {reason}"
        )
        notes[note] = None
    only_there = []
    for theirs in others:
        is_here = False
        for name, here in values_here.items():
            if by_name[name].group == theirs.score and _is_equal(theirs.value, here):
                is_here = True
                break
        if not is_here:
            only_there.append(f"{theirs.score} {theirs.metric} {theirs.value:.6g}")
    if only_there:
        listed = ", ".join(only_there)
        note = f"metrics of the log that need the whole corpus, and are not computed here: {listed}"
        notes[note] = None
    return replace(evaluation, notes=list(notes))


def _is_equal(theirs: float, ours: float) -> bool:
    """Return whether two scores are equal, apart from the log's rounding and order of summation."""
    if isclose(theirs, ours, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        return True
    # The log's number may be rounded. The number of its digits shows the precision.
    digits = len(repr(theirs).partition(".")[2])
    return FEWEST_DIGITS <= digits < 10 and isclose(round(ours, digits), theirs, abs_tol=1e-12)


def _reason(
    evaluation: Evaluation, reported: Reported, spec: ScoreSpec | None, here: float | None
) -> str:
    """Say why a score in the log differs from the one that its samples give.

    Args:
        evaluation: the evaluation of the samples.
        reported: the score in the log.
        spec: the score of this name here, or None if there is none.
        here: its value, or None if it is not defined.
    """
    records = evaluation.records
    stem, _, reducer = reported.score.rpartition(".")
    groups = {spec.group for spec in evaluation.score_specs}
    if here is None and stem in groups:
        return f"the reducer {reducer} is not known here, or has too few epochs of some questions"
    if here is None:
        return "the samples have no value for it, because it is computed over the whole corpus"
    columns = {reported.score}
    if spec:
        columns = set(spec.needs)
    valued = [record for record in records if columns <= record.scores.keys()]
    reasons = []
    if lacking := len(records) - len(valued):
        reasons.append(f"{lacking} of {len(records)} samples here have no value")
    if failed := [record.id for record in records if record.status == FAILED]:
        reasons.append(f"{len(failed)} failed ({some(failed)})")
    question_ids = {record.id for record in valued}
    counts = (len(valued), len(question_ids))
    if reported.samples is not None and reported.samples not in counts:
        reasons.append(f"the log's is over {reported.samples} samples, this one over {counts[0]}")
    if not reasons:
        reasons.append("the log's is not the mean of the values of its samples")
    return "; ".join(reasons)
