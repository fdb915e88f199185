"""ROUGE of long-form answers, as ExpertQA reports it.

It has the values of ``evaluate.load("rouge")`` with its defaults. Source: Malaviya et al.,
ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and ``eval/nlg_eval.py`` of its repository.
Lin, ROUGE, 2004.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from rouge_score.scoring import BootstrapAggregator, Score

from qabench.answers import text_pairs
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.text.rouge import backend, score_pairs

LFQA_ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
BOOTSTRAP_SAMPLES = 1000  # the default of rouge_score's aggregator


def lfqa_rouge(references: Sequence[str], predictions: Sequence[Any], *, seed: int = 0) -> Json:
    """Compute ROUGE-1, 2, L and Lsum F-measures of answers against reference answers, without stemmer.

    The metric of ``evaluate`` returns not the mean over questions but the median of bootstrapped
    means, drawn with NumPy's global random generator: without a seed, its scores change from run to
    run. The scores here equal ``evaluate.load("rouge", seed=seed)`` to the last digit.

    A prediction is None or ``UNANSWERED`` for an unanswered question. ``seed`` is for the bootstrap,
    from 0 to 2**32 - 1.

    Returns:
        rouge1, rouge2, rougeL, rougeLsum: the official scores, fractions in [0, 1].
        mean, interval: by type the mean over questions, which does not depend on the seed, and the
            bounds of the 95% interval, from the same samples as the score.
        unanswered: the number of questions without an answer. They score 0, as the empty string.
        per_question: the F-measures of each question by type, in the order of the input.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 32:
        raise InputError(f"seed must be between 0 and 2**32 - 1, as an integer; it is {seed!r:.60}")
    targets, answers = text_pairs(references, predictions)
    scores = score_pairs(LFQA_ROUGE_TYPES, targets, [answer or "" for answer in answers])
    aggregator = import_module(f"{backend()}.scoring").BootstrapAggregator()
    for score in scores:
        # The order matters: all types are resampled from one stream of random numbers.
        aggregator.add_scores({kind: score[kind] for kind in LFQA_ROUGE_TYPES})
    with _seeded(seed):
        bounds = aggregator.aggregate()
    rows = [{kind: score[kind].fmeasure for kind in LFQA_ROUGE_TYPES} for score in scores]
    result: Json = {kind: float(bounds[kind].mid.fmeasure) for kind in LFQA_ROUGE_TYPES}
    result["mean"] = {kind: sum(row[kind] for row in rows) / len(rows) for kind in LFQA_ROUGE_TYPES}
    result["interval"] = {
        kind: [float(bounds[kind].low.fmeasure), float(bounds[kind].high.fmeasure)]
        for kind in LFQA_ROUGE_TYPES
    }
    return result | {"unanswered": answers.count(None), "per_question": rows}


def median_of_means(kind: str, values: Sequence[float]) -> float:
    """Return the official score from the questions' F-measures of one type, as in ``lfqa_rouge``.

    The types are resampled in the order of ``LFQA_ROUGE_TYPES`` from one stream of random numbers.
    """
    aggregator = BootstrapAggregator()
    before = LFQA_ROUGE_TYPES[: LFQA_ROUGE_TYPES.index(kind) + 1]
    for value in values:
        aggregator.add_scores(dict.fromkeys(before, Score(value, value, value)))
    with _seeded(0):
        return float(aggregator.aggregate()[kind].mid.fmeasure)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global random generator and restore it afterward: the aggregators do not accept a generator."""
    state = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(state)
