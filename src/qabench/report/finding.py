"""The finding of a comparison in one sentence or two: which system is best, if that is known."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.evaluation.comparison import Comparison, Pair
from qabench.evaluation.number_form import p_equation
from qabench.evaluation.records import Score


def finding(comparison: Comparison, unscored: Sequence[str] = ()) -> str:
    """Return the finding of a comparison with at least one pair.

    A system is called the best only if all systems are scored on the same questions, and it is
    significantly better than each of the others.

    Args:
        comparison: the comparison of the systems by a score.
        unscored: the labels of the systems that do not have the score.
    """
    leader = next(iter(comparison.systems))
    title, several = comparison.spec.title, len(comparison.pairs)
    pairs = [pair for pair in comparison.pairs if leader in (pair.first, pair.second)]
    nearest = (pairs or comparison.pairs)[0]
    if nearest.second == leader:
        # If both scores of a pair are equal, either system may be its first.
        leader = nearest.first
        pairs = [pair for pair in comparison.pairs if leader in (pair.first, pair.second)]
    missing = f" {nearest.missing()}." if nearest.missing() else ""
    missing += without(unscored)
    measured = _test(nearest, several)
    if not comparison.same_questions:
        ahead = f"{nearest.first} is {measured} ahead of {nearest.second}; {_decided(nearest)}"
        if nearest.is_equal:
            ahead = f"{nearest.first} and {nearest.second} have equal scores"
        return (
            f"{title}: the systems have scores for different questions, so their scores do not rank them. "
            f"On the {nearest.n:,} that both have, {ahead}.{missing}"
        )
    score = score_with_interval(comparison.systems[leader])
    if nearest.is_equal:
        equal = [leader]
        for pair in pairs:
            if pair.is_equal:
                equal.append(pair.first if pair.second == leader else pair.second)
        names = f"{', '.join(equal[:-1])} and {equal[-1]}"
        return f"{title}: {names} have equal scores, {score}.{missing}"
    beaten = sum(pair.significant and pair.first == leader for pair in pairs)
    if beaten == len(pairs):
        others = f" than each of the {len(pairs)} other systems" if len(pairs) > 1 else ""
        return (
            f"{title}: {leader} is the best system, {score}. It is {measured} ahead of {nearest.second}; "
            f"it is significantly better{others}.{missing}"
        )
    better = (
        f" It is significantly better than {beaten} of {len(pairs)} other systems."
        if beaten
        else ""
    )
    return (
        f"{title}: no system is shown to be the best. {leader} has the best score, {score}. "
        f"It is {measured} ahead of {nearest.second}; {_decided(nearest)}.{better}{missing}"
    )


def without(unscored: Sequence[str]) -> str:
    """Return a sentence that names the systems without the score, or "" if all have it."""
    return f" Without this score: {', '.join(unscored)}." if unscored else ""


def _decided(pair: Pair) -> str:
    if not pair.answered:
        return "no question was answered by both"
    return "it is significantly better" if pair.significant else "the two cannot be told apart"


def score_with_interval(score: Score) -> str:
    return f"{score.value:.3f} (95% CI {score.interval.bounds('.3f')}, n = {score.size})"


def _test(pair: Pair, pairs: int) -> str:
    interval = pair.difference.interval
    p = p_equation(pair.corrected_p)
    corrected = "corrected " if pairs > 1 else ""
    uncorrected = ", not corrected" if pairs > 1 else ""
    bounds = interval.bounds(".3f").replace("-", "\N{MINUS SIGN}")
    return f"{interval.mean:.3f} (95% CI {bounds}{uncorrected}; paired test, {corrected}{p}, n = {pair.n:,})"
