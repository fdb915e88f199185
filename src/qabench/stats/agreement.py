"""Agreement of two judges beyond chance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from qabench.errors import InputError
from qabench.stats.bootstrap import Interval, interval
from qabench.stats.resampling import RESAMPLES, SEED, Array, drawn_sums, scores, units


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa of two judges.

    Attributes:
        interval: kappa, 1 for full agreement and 0 for agreement by chance, with its bootstrap interval. It is
            undefined in resamples with a single label.
        agreement: the fraction of items with equal labels.
        chance: the fraction of equal labels expected by chance, given how often each judge uses each label.
    """

    interval: Interval
    agreement: float
    chance: float


def cohens_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Kappa:
    """Return the agreement of two judges on the same items beyond chance; nominal labels, no weights.

    A label is any hashable value, including None: leave out items that a judge did not label, and report their number.

    Args:
        first: one label per item.
        second: the labels of the other judge, aligned.
        clusters: each item's question if one question gives several items.
        resamples: as ``bootstrap``.
        seed: as ``bootstrap``.

    Raises:
        InputError: no items, lists of different lengths, or both judges give all items the same label: kappa is then
            undefined.

    Source: Cohen, A Coefficient of Agreement for Nominal Scales, 1960.
    """
    if len(first) != len(second):
        raise InputError(f"labels must be aligned: {len(first)} and {len(second)} labels")
    if len(first) == 0:
        raise InputError("kappa of no items is undefined")
    labels = {label: i for i, label in enumerate(dict.fromkeys([*first, *second]))}
    kinds = len(labels)
    # The statistics of an item: whether the labels are equal, and a one-hot label of each judge.
    ours, theirs = (np.eye(kinds)[[labels[label] for label in judge]] for judge in (first, second))
    rows = units(np.column_stack([(ours * theirs).sum(axis=1), ours, theirs]), clusters)

    def shares(equal: Array, *counts: Array) -> tuple[Array, Array]:
        labeled = np.stack(counts).reshape(2, kinds, -1)
        items = labeled[0].sum(axis=0)
        return equal / items, (labeled[0] * labeled[1]).sum(axis=0) / items**2

    def kappa(*statistics: Array) -> Array:
        agreement, chance = shares(*statistics)
        return np.where(chance < 1, (agreement - chance) / (1 - chance), np.nan)

    if kinds == 1:
        raise InputError(f"kappa is undefined: both judges gave every item the label {next(iter(labels))!r}")
    total = rows.sum(axis=0, keepdims=True)
    agreement, chance = shares(*total.T)
    values = scores(kappa, drawn_sums(rows, resamples, seed))
    return Kappa(interval(float(scores(kappa, total)[0]), values), float(agreement[0]), float(chance[0]))
