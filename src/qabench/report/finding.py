"""The finding of a section in one sentence: who leads, by how much, and whether the difference is significant."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.evaluation.comparison import Comparison, Pair
from qabench.evaluation.evaluation import Score

NAMED = 3  # systems that a sentence names; the others are counted


def finding(comparison: Comparison) -> str:
    """Return the finding of a comparison with at least one pair."""
    leader, *rivals = comparison.systems
    pairs = {
        (pair.second if pair.first == leader else pair.first): pair
        for pair in comparison.pairs
        if leader in (pair.first, pair.second)
    }
    rivals = [label for label in rivals if label in pairs]
    if not rivals:
        return (
            f"{leader} has the best {_lowered(comparison.metric.title)}; it shares no questions with the other systems."
        )
    tied = [label for label in rivals if not (pairs[label].significant and pairs[label].first == leader)]
    if not tied:
        return _leads(leader, rivals, pairs[rivals[0]], comparison)
    return _does_not_lead(leader, rivals, tied, pairs[rivals[0]], comparison)


def single(label: str, score: Score) -> str:
    """Return the finding for one system."""
    interval = score.interval
    return (
        f"{label}: {_lowered(score.metric.title)} {interval.mean:.3f} "
        f"(95% CI {interval.low:.3f} to {interval.high:.3f}, n = {score.size})."
    )


def _leads(leader: str, rivals: Sequence[str], second: Pair, comparison: Comparison) -> str:
    whom = f" {rivals[0]}" if len(rivals) == 1 else ""
    sentence = f"{leader} leads{whom} by {_test(second, comparison)} in {_lowered(comparison.metric.title)}"
    if len(rivals) == 1:
        return f"{sentence}."
    rest = [pair for pair in comparison.pairs if leader not in (pair.first, pair.second)]
    significant = sum(pair.significant for pair in rest)
    if not significant:
        return f"{sentence}; the other systems do not differ significantly."
    if significant == len(rest):
        return f"{sentence}; all other systems differ significantly, too."
    return f"{sentence}; of the other {len(rest)} pairs, {significant} differ significantly."


def _does_not_lead(
    leader: str, rivals: Sequence[str], tied: Sequence[str], second: Pair, comparison: Comparison
) -> str:
    best = f"{leader} has the best {_lowered(comparison.metric.title)}"
    if len(rivals) == 1:
        return f"{best}, but {rivals[0]} does not differ significantly: the difference is {_test(second, comparison)}."
    who = "no other system differs" if len(tied) == len(rivals) else f"{_named(tied)} do not differ"
    if len(tied) == 1:
        who = f"{tied[0]} does not differ"
    return f"{best}, but {who} significantly; {leader} is {_test(second, comparison)} ahead of {rivals[0]}."


def _test(pair: Pair, comparison: Comparison) -> str:
    interval = pair.difference.interval
    p = "p < 0.001" if pair.corrected_p < 0.001 else f"p = {pair.corrected_p:.3f}"
    if len(comparison.pairs) > 1:
        p = f"corrected {p}"
    low, high = _number(interval.low), _number(interval.high)
    return f"{interval.mean:.3f} (95% CI {low} to {high}, paired test, {p}, n = {pair.n:,})"


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "\N{MINUS SIGN}")


def _lowered(title: str) -> str:
    # Abbreviations keep their capitals.
    return title if title[1:2].isupper() or title[1:2].isdigit() or "@" in title else title[:1].lower() + title[1:]


def _named(labels: Sequence[str]) -> str:
    if len(labels) > NAMED + 1:  # the last one is named instead of "1 other"
        return f"{', '.join(labels[:NAMED])} and {len(labels) - NAMED} others"
    *first, last = labels
    return f"{', '.join(first)} and {last}" if first else last
