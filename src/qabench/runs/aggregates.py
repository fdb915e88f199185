"""Compares the scores that another harness printed with the scores that follow from its samples.

Harnesses write the aggregate beside the samples: Inspect in the header, lm-evaluation-harness and
lighteval in ``results_*.json``, Every Eval Ever in the document of the run. Equal scores need no
note. A different score gets a note with both numbers and the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isclose, isfinite
from typing import NamedTuple

from qabench.data.rows import Json
from qabench.errors import some
from qabench.evaluation import FAILED, Evaluation
from qabench.evaluation.records import values_of
from qabench.evaluation.score_spec import MEAN, ScoreSpec
from qabench.runs.epochs import reduced_name

# Harnesses sum in a different order, and some round.
TOLERANCE = 1e-6
# A number with fewer digits after the point is not taken for a rounded score.
FEWEST_DIGITS = 3
# Inspect's metrics that average the samples, and those that measure their spread.
MEANS = ("accuracy", "mean")
SPREADS = ("stderr", "bootstrap_stderr", "std", "var", "ci", "ci_wilson")


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


class InspectScores(NamedTuple):
    """The aggregate scores in the header of an Inspect log.

    Attributes:
        means: the scores that are means over samples, or over questions if epochs were reduced.
        reducers: the names of the reducers of each score, such as {"match": ["mean", "max"]}.
        others: the other metrics, such as the perplexity of a corpus. They do not follow from one
            number per sample.
    """

    means: list[Reported]
    reducers: dict[str, list[str]]
    others: list[Reported]


def reported_by_inspect(results: Json, has_epochs: bool) -> InspectScores:
    """Return the scores in the header of an Inspect log.

    ``results["scores"]`` has one object per scorer, key of the scorer's values, and reducer. This
    one is of a scorer "keys", whose values are dicts with the key "half"::

        {
            "name": "half",
            "scorer": "keys",
            "reducer": "max",
            "scored_samples": 8,
            "metrics": {"accuracy": {"name": "accuracy", "value": 0.75}},
        }

    It becomes the score "keys.half.max" with the metric "accuracy of max".

    Args:
        results: the results in the header.
        has_epochs: whether a question has several epochs. If not, no reducer is part of a name,
            because every reducer leaves a single value as it is.
    """
    # Pairs: a mean, and the name of the reducer that gave the values, or None.
    means: list[tuple[Reported, str | None]] = []
    reducers: dict[str, list[str]] = {}
    others: list[Reported] = []
    for entry in results.get("scores") or ():
        score = entry["name"]
        if score != entry.get("scorer", score):
            score = f"{entry['scorer']}.{score}"
        reducer = entry.get("reducer")
        reducers_of_score = reducers.setdefault(score, [])
        if reducer and reducer not in reducers_of_score:
            reducers_of_score.append(reducer)
        for key, metric in (entry.get("metrics") or {}).items():
            # A metric of another package has the package in its name: "package/accuracy".
            kind = str(metric.get("group") or metric.get("name") or key).rpartition("/")[2]
            value = metric.get("value")
            if kind in SPREADS or not isinstance(value, int | float):
                continue
            if kind not in MEANS:
                others.append(Reported(score, key, value))
                continue
            if reducer and reducer != MEAN:
                kind = f"{kind} of {reducer}"
            means.append((Reported(score, kind, value, entry.get("scored_samples")), reducer))
    # A score's name depends on all of its reducers, which are only known after the loop above.
    named = []
    for mean, reducer in means:
        # If the mean is the only reducer, the score keeps its name.
        is_reduced = has_epochs and bool(set(reducers[mean.score]) - {MEAN})
        if is_reduced and reducer:
            mean = replace(mean, score=reduced_name(mean.score, reducer))
        named.append(mean)
    return InspectScores(named, reducers, others)


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
    # The log's number may be rounded: 0.333 is equal to 1/3, which is 0.333 if it is rounded to as
    # many digits. Numbers with 6 digits or more are never rounded by more than the tolerance.
    digits = len(repr(theirs).partition(".")[2])
    return digits >= FEWEST_DIGITS and round(ours, digits) == theirs


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
    groups = {each.group for each in evaluation.score_specs}
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
