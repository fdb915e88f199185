"""Uncertainty of scores: intervals, paired tests of systems, corrections.

Everything here uses *sums of per-item statistics*: a mean is the sum of scores over the sum of
ones, F1 a function of summed true positives, false positives and false negatives, BLEU of summed
n-gram counts. If one question gives several items (claims, segments), ``clusters`` names each
item's question, and whole questions are left out, drawn or swapped.

Sources: Clopper and Pearson, The Use of Confidence or Fiducial Limits, 1934 (intervals of 0/1
scores). Korn and Graubard, Confidence Intervals for Proportions with Small Expected Number of
Positive Counts, 1998 (intervals of other fractions). Bonett and Price, Adjusted Wald Confidence
Interval for a Difference of Binomial Proportions Based on Paired Data, 2012 (differences of 0/1
scores). Efron and Tibshirani, An Introduction to the Bootstrap, 1993 (standard errors by the
jackknife). Koehn, Statistical Significance Tests for Machine Translation
Evaluation, EMNLP 2004 (paired bootstrap). Noreen, Computer-Intensive Methods for Testing
Hypotheses, 1989, and Fisher, The Design of Experiments, 1935 (randomization). Phipson and Smyth,
Permutation P-values Should Never Be Zero, 2010 (counting the observed sample).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qabench.stats.corrections import CORRECTIONS, adjust
    from qabench.stats.intervals import Interval, mean_interval, score_interval
    from qabench.stats.paired import RESAMPLES, Difference, paired_test
    from qabench.stats.prediction_powered import Corrected, corrected_difference, corrected_mean

# Each module is imported on first use, because scoring needs only the intervals.
_MODULES = {
    "CORRECTIONS": "corrections",
    "RESAMPLES": "paired",
    "Corrected": "prediction_powered",
    "Difference": "paired",
    "Interval": "intervals",
    "adjust": "corrections",
    "corrected_difference": "prediction_powered",
    "corrected_mean": "prediction_powered",
    "mean_interval": "intervals",
    "paired_test": "paired",
    "score_interval": "intervals",
}
__all__ = [
    "CORRECTIONS",
    "RESAMPLES",
    "Corrected",
    "Difference",
    "Interval",
    "adjust",
    "corrected_difference",
    "corrected_mean",
    "mean_interval",
    "paired_test",
    "score_interval",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"qabench.stats.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'qabench.stats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
