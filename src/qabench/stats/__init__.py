"""Uncertainty of scores: bootstrap intervals, paired tests of systems, corrections, agreement of judges.

Everything here resamples *sums of per-item statistics*: a mean is the sum of scores over the sum of ones, F1 a function
of summed true and false positives, BLEU of summed n-gram counts. If one question gives several items (claims,
segments), ``clusters`` names each item's question, and whole questions are drawn or swapped.
"""

from __future__ import annotations

from qabench.stats.agreement import Kappa, cohens_kappa
from qabench.stats.bootstrap import Interval, bootstrap, bootstrap_mean
from qabench.stats.paired import CORRECTIONS, Difference, adjust, paired_bootstrap, paired_randomization
from qabench.stats.resampling import RESAMPLES

__all__ = [
    "CORRECTIONS",
    "RESAMPLES",
    "Difference",
    "Interval",
    "Kappa",
    "adjust",
    "bootstrap",
    "bootstrap_mean",
    "cohens_kappa",
    "paired_bootstrap",
    "paired_randomization",
]
